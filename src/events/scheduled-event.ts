import type { AttributeValue, CloudEvent } from '../../sinks/cloud-event.ts'
import { toIso } from '../lifecycle/instant.ts'
import type { EndTransition, StateTransition, Transition } from '../lifecycle/model.ts'
import { namesThisVm } from '../lifecycle/names.ts'
import { buildEvent } from './build.ts'
import { fitData } from './fit-data.ts'
import { type Identity, observerOf, type Scope, sourceOf } from './identity.ts'
import { partitionKey, transitionId } from './ids.ts'
import { scheduledEventCuts } from './scheduled-event-cuts.ts'
import type { ScheduledEventData } from './schemas.ts'
import { severityOfEvent } from './severity.ts'
import { vmData } from './vm-data.ts'

/** What all events of a forwarder share. */
export interface EventContext {
  /** `events.typePrefix` of the configuration. */
  readonly prefix: string
  readonly scope: Scope
  readonly identity: Identity
}

/** The event that tells a transition. Throws `event_invalid`. */
export function buildScheduledEvent(transition: Transition, { prefix, scope, identity }: EventContext): CloudEvent {
  const source = sourceOf(identity, scope)
  const status = transition.kind === 'end' ? transition.outcome : transition.status
  const severity = severityOfEvent(status, transition.event.eventType)
  const extensions: Record<string, AttributeValue | null> = {
    azeventtype: transition.event.eventType,
    azeventsource: transition.event.eventSource,
    azincarnation: transition.incarnation === null ? null : String(transition.incarnation),
    azobserver: observerOf(identity),
    severitytext: severity.text,
    severitynumber: severity.number,
  }
  return buildEvent({
    id: transitionId(transition, scope === 'vm' ? (identity.vmId ?? identity.vmName ?? 'unknown') : null),
    source,
    type: `${prefix}.scheduledevent.${status}.v1`,
    subject: `${source}/scheduledevents/${transition.key}`,
    at: transition.at,
    schema: 'scheduledevent',
    partitionkey: partitionKey(transition.key),
    extensions,
    data: fitData(dataOf(transition, scope, identity), scheduledEventCuts),
  })
}

function dataOf(transition: Transition, scope: Scope, identity: Identity): ScheduledEventData {
  return {
    ...eventData(transition),
    ...(scope === 'vm' ? vmScopeData(transition, identity) : {}),
    ...(transition.kind === 'end' ? endData(transition) : stateData(transition)),
    ...(transition.reappeared ? { reappeared: true } : {}),
    ...(transition.anomaly === undefined ? {} : { anomaly: transition.anomaly }),
    ...(transition.event.raw === undefined ? {} : { raw: transition.event.raw }),
  }
}

function eventData({ event, notBefore }: Transition): ScheduledEventData {
  const { eventId, eventType, eventStatus, eventSource, resourceType, resources, description, durationInSeconds } = event
  return {
    eventId,
    eventType,
    eventStatus,
    eventSource,
    resourceType,
    resources: [...resources],
    notBefore,
    description,
    durationInSeconds,
  }
}

const vmScopeData = ({ event }: Transition, identity: Identity): Partial<ScheduledEventData> => ({
  affectsThisVm: namesThisVm(event.resources, identity.vmName),
  vm: vmData(identity),
})

function stateData({ changes, scheduledObserved, status }: StateTransition): Partial<ScheduledEventData> {
  return {
    ...(changes.length === 0 ? {} : { changes: changes.map(({ field, from, to }) => ({ field, from: mutable(from), to: mutable(to) })) }),
    ...(status === 'started' ? { scheduledObserved } : {}),
  }
}

const endData = ({ outcome, evidence, scheduledAt, startedAt, endedAt, gapSeconds }: EndTransition): Partial<ScheduledEventData> => ({
  outcome,
  evidence,
  scheduledAt: instant(scheduledAt),
  startedAt: instant(startedAt),
  endedAt: toIso(endedAt),
  gapSeconds,
})

const instant = (at: number | null): string | null => (at === null ? null : toIso(at))
const mutable = (value: string | number | null | readonly string[]): string | number | null | string[] =>
  typeof value === 'object' && value !== null ? [...value] : value
