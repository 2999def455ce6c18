import type { CloudEvent } from '../../sinks/cloud-event.ts'

/** What an event must be to reach a sink; every given part must match. See `filter` in `src/config/schema.ts`. */
export interface EventFilter {
  readonly types?: readonly string[] | undefined
  readonly eventTypes?: readonly string[] | undefined
  readonly eventSources?: readonly string[] | undefined
  readonly affectsThisVm?: boolean | undefined
}

/**
 * Whether `event` passes. `affectsThisVm` is what this VM knows of itself, null where it does not know or the event has no Resources.
 * Part names compare without case. An event that lacks what a part asks for (a heartbeat has no eventType) does not pass it.
 */
export function passes(filter: EventFilter | undefined, event: CloudEvent, affectsThisVm: boolean | null, prefix: string): boolean {
  if (filter === undefined) return true
  if (filter.types !== undefined && !filter.types.some((wanted) => typeMatches(wanted, event.type, prefix))) return false
  if (filter.eventTypes !== undefined && !includes(filter.eventTypes, event['azeventtype'])) return false
  if (filter.eventSources !== undefined && !includes(filter.eventSources, event['azeventsource'])) return false
  return filter.affectsThisVm === undefined || filter.affectsThisVm === affectsThisVm
}

function typeMatches(wanted: string, type: string, prefix: string): boolean {
  const short = type.slice(prefix.length + 1).replace(/\.v\d+$/, '')
  return [type, short].some((name) => (wanted.endsWith('*') ? name.startsWith(wanted.slice(0, -1)) : name === wanted))
}

const includes = (wanted: readonly string[], value: unknown): boolean =>
  typeof value === 'string' && wanted.some((one) => one.toLowerCase() === value.toLowerCase())
