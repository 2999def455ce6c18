import { mergeDuplicates } from '../lifecycle/merge-duplicates.ts'
import type { EventsDocument, ScheduledEvent } from '../lifecycle/model.ts'

/**
 * What an approver of a deletion should know: those with one NotBefore proceed only once each is approved by its own machine, or timed out.
 * Empty where the event is no Terminate, or the only one.
 *
 * Source: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification
 */
export function explainTerminate(event: ScheduledEvent | null, document: EventsDocument): string {
  if (event === null || !isTerminate(event)) return ''
  const others = [...mergeDuplicates(document.events).events.values()].filter(
    (other) => isTerminate(other) && other.notBefore === event.notBefore && other.eventId.toLowerCase() !== event.eventId.toLowerCase(),
  )
  if (others.length === 0) return ''
  return `; ${others.length} more Terminate with the same NotBefore: Azure deletes none of these machines before each has approved its own, or its time is up`
}

const isTerminate = ({ eventType }: ScheduledEvent): boolean => eventType.toLowerCase() === 'terminate'
