import { changesBetween } from './changes.ts'
import { digest16 } from './digest.ts'
import type { EndedEvent, EndTransition, LiveEvent, Reading, ScheduledEvent, StateTransition } from './model.ts'
import { statusName } from './status.ts'
import type { Verdict } from './verdict.ts'

/** An event whose content changes at every poll must not let the state grow without bound. */
const maxReported = 64

/** What is remembered of an event before its first state is told. */
export function newcomer(event: ScheduledEvent, generation: number): LiveEvent {
  return {
    event,
    generation,
    reported: {},
    incarnation: null,
    epoch: 0,
    lastNotBefore: null,
    scheduledObserved: false,
    scheduledAt: null,
    startedAt: null,
    approved: false,
    anomalous: false,
  }
}

/** What is remembered once `event` was seen in the document: its wording and spelling may differ, its content does not. */
export function seenAgain(before: LiveEvent, event: ScheduledEvent, reading: Reading, epoch: number): LiveEvent {
  return {
    ...before,
    event,
    incarnation: reading.document.incarnation,
    epoch,
    lastNotBefore: event.notBefore ?? before.lastNotBefore,
  }
}

interface Told {
  readonly transition: StateTransition
  readonly live: LiveEvent
}

/** The report of a new state. `before` is a `newcomer` for an event that was absent. */
export function enterState(key: string, before: LiveEvent, event: ScheduledEvent, reading: Reading, epoch: number): Told {
  const status = statusName(event.eventStatus)
  const stateDigest = digest16(event)
  const state = `${status}:${stateDigest}`
  const { [state]: earlier = 0, ...otherStates } = before.reported
  const seen = seenAgain(before, event, reading, epoch)
  const backToScheduled = status === 'scheduled' && before.startedAt !== null && statusName(before.event.eventStatus) !== 'scheduled'
  const live: LiveEvent = {
    ...seen,
    reported: { ...Object.fromEntries(Object.entries(otherStates).slice(1 - maxReported)), [state]: earlier + 1 },
    scheduledObserved: before.scheduledObserved || status === 'scheduled',
    scheduledAt: before.scheduledAt ?? (status === 'scheduled' ? reading.at : null),
    startedAt: before.startedAt ?? (status === 'started' ? reading.at : null),
    anomalous: before.anomalous || backToScheduled,
  }
  const transition: StateTransition = {
    kind: 'state',
    key,
    generation: before.generation,
    event,
    status,
    digest16: stateDigest,
    repeat: earlier + 1,
    // Once started the plan is no longer in the document, which is no change of plan.
    changes: changesBetween(before.event, event).filter(({ field, to }) => field !== 'notBefore' || to !== null || status === 'scheduled'),
    // A new NotBefore is a new plan, so Scheduled without one has none; once started, the plan that it followed is still worth telling.
    notBefore: status === 'scheduled' ? event.notBefore : seen.lastNotBefore,
    incarnation: reading.document.incarnation,
    at: reading.at,
    scheduledObserved: live.scheduledObserved,
    reappeared: before.generation > 1 && Object.keys(before.reported).length === 0,
    ...(backToScheduled ? { anomaly: 'started-to-scheduled' } : {}),
  }
  return { transition, live }
}

/** The report of an end. `event` is the event as it stood last. */
export function leave(
  key: string,
  before: LiveEvent,
  event: ScheduledEvent,
  reading: Reading,
  { outcome, evidence }: Verdict,
): { transition: EndTransition; ended: EndedEvent } {
  const transition: EndTransition = {
    kind: 'end',
    key,
    generation: before.generation,
    event,
    notBefore: event.notBefore ?? before.lastNotBefore,
    incarnation: reading.document.incarnation,
    at: reading.at,
    scheduledObserved: before.scheduledObserved,
    reappeared: false,
    outcome,
    evidence,
    scheduledAt: before.scheduledAt,
    startedAt: before.startedAt,
    endedAt: reading.at,
    gapSeconds: evidence.gapSeconds,
  }
  return { transition, ended: { generation: before.generation, endedAt: reading.at } }
}
