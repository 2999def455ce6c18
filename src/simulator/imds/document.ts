import type { ApiVersion } from '../../imds/api-versions.ts'
import type { Moment, VisibleEvent } from './timeline.ts'

/** From which API version on a type is shown; any other type always is. Comparing versions as text compares them in time. */
const shownSince = new Map<string, ApiVersion>([
  ['Preempt', '2017-11-01'],
  ['Terminate', '2019-01-01'],
])

/** The events that this API version shows at all. */
export function shownEvents(moment: Moment, version: ApiVersion): VisibleEvent[] {
  return moment.events.filter(({ event }) => version >= (shownSince.get(event.type) ?? version))
}

/**
 * The document as this API version writes it, fields in the order of captured documents. `wallClock` turns scenario seconds into
 * milliseconds since the epoch: NotBefore is the real time at which the event will start, rounded down to the second, so never after it.
 */
export function renderDocument(moment: Moment, version: ApiVersion, wallClock: (seconds: number) => number): Record<string, unknown> {
  return {
    DocumentIncarnation: moment.incarnation,
    Events: shownEvents(moment, version).map((visible) => renderEvent(visible, version, wallClock)),
  }
}

function renderEvent(
  { event, status, notBeforeSeconds }: VisibleEvent,
  version: ApiVersion,
  wallClock: (seconds: number) => number,
): Record<string, unknown> {
  return {
    EventId: event.id,
    EventStatus: status,
    EventType: event.type,
    ResourceType: 'VirtualMachine',
    Resources: version === '2017-03-01' ? event.resources.map((name) => `_${name}`) : event.resources,
    NotBefore: status === 'Started' ? '' : new Date(wallClock(notBeforeSeconds)).toUTCString(),
    ...(version >= '2019-04-01' && { Description: event.description }),
    ...(version >= '2019-08-01' && { EventSource: event.source }),
    ...(version >= '2020-07-01' && { DurationInSeconds: event.durationSeconds }),
    ...event.extra,
  }
}
