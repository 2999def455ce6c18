import { canonicalJson } from './canonical-json.ts'
import type { ScheduledEvent } from './model.ts'
import { statusName, terminalOutcome } from './status.ts'

interface Merged {
  /** By folded EventId. */
  readonly events: ReadonlyMap<string, ScheduledEvent>
  /** The ids that stood there more than once, with the canonical text of all their entries. */
  readonly duplicates: ReadonlyMap<string, string>
}

/** One event for each id, the same whatever the order and spelling in which a replica lists the entries. */
export function mergeDuplicates(entries: readonly ScheduledEvent[]): Merged {
  const events = new Map<string, ScheduledEvent>()
  const duplicates = new Map<string, string>()
  for (const [key, [first, ...others]] of Map.groupBy(entries, (entry) => entry.eventId.toLowerCase())) {
    if (first === undefined) continue
    if (others.length === 0) {
      events.set(key, first)
      continue
    }
    const all = [first, ...others]
    events.set(key, merge(first, others))
    duplicates.set(key, all.map(canonical).toSorted().join())
  }
  return { events, duplicates }
}

/** The most advanced status wins; what else differs is taken from the entry that comes first in canonical order. */
function merge(first: ScheduledEvent, others: readonly ScheduledEvent[]): ScheduledEvent {
  const chosen = others.reduce((best, entry) => (comesBefore(entry, best) ? entry : best), first)
  const resources = new Set([first, ...others].flatMap((entry) => entry.resources))
  return { ...chosen, resources: [...resources].toSorted() }
}

function comesBefore(entry: ScheduledEvent, best: ScheduledEvent): boolean {
  const ahead = advance(entry) - advance(best)
  return ahead > 0 || (ahead === 0 && canonical(entry) < canonical(best))
}

function advance({ eventStatus }: ScheduledEvent): number {
  if (terminalOutcome(eventStatus) !== null) return 3
  if (statusName(eventStatus) === 'started') return 2
  return statusName(eventStatus) === 'scheduled' ? 0 : 1
}

const canonical = (entry: ScheduledEvent): string => canonicalJson({ ...entry })
