import type { Json, JsonObject } from '../../sinks/cloud-event.ts'

/**
 * The shapes that the lifecycle works on. Everything in this folder is pure: no clock, network or disk.
 * The whole remembered state is plain JSON, because it is stored as such.
 */

/** The fields that decide whether two sightings of an event are the same state: exactly those that the digest covers. */
export interface EventContent {
  /** Freeze, Reboot, Redeploy, Preempt, Terminate or whatever comes next, as sent. */
  readonly eventType: string
  /** Scheduled, Started or whatever else was sent, as sent. */
  readonly eventStatus: string
  readonly eventSource: string | null
  /** ISO 8601 in UTC with whole seconds (`2022-04-11T22:26:58Z`), null where empty, missing or unreadable. */
  readonly notBefore: string | null
  /** As sent, sorted by code unit. */
  readonly resources: readonly string[]
  /** Seconds; -1 is Azure's "unknown"; null where missing. */
  readonly durationInSeconds: number | null
}

/** One entry of `Events`, parsed. */
export interface ScheduledEvent extends EventContent {
  /** In the spelling of the document: a StartRequests POST repeats it. */
  readonly eventId: string
  readonly resourceType: string | null
  /** At most 4 KiB of UTF-8. */
  readonly description: string | null
  /** The entry as it came, at most 8 KiB of JSON, only where a part of it could not be read. */
  readonly raw?: JsonObject
  /** The fields of the content that could not be read and are null or shortened for that; only where there are some. */
  readonly unreadable?: readonly (keyof EventContent)[]
}

/** An entry of `Events` that cannot be used: no readable id, status or type. */
export interface BrokenEntry {
  /** Folded id where that much could be read. */
  readonly key: string | null
  readonly eventType: string | null
  /** Sorted; empty where it could not be read. */
  readonly resources: readonly string[]
  /** What was expected and what came, for people. */
  readonly problem: string
  /** The entry as it came, at most 8 KiB of JSON. */
  readonly raw: Json
}

/** A 200 whose body is an object with an `Events` array, parsed entry by entry. */
export interface EventsDocument {
  /** As sent; null where missing. Compare only through `incarnationNumber`. */
  readonly incarnation: number | string | null
  readonly events: readonly ScheduledEvent[]
  readonly broken: readonly BrokenEntry[]
}

/** One look at the endpoint, and the clocks at that moment. */
export interface Reading {
  readonly document: EventsDocument
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Changes with every boot of the machine; null where the platform has none. */
  readonly bootId: string | null
  /** `compute.vmId`, null while unknown. */
  readonly vmId: string | null
  /** `compute.name`, null while unknown. */
  readonly vmName: string | null
}

/** What is remembered of an event that is in the document. */
export interface LiveEvent {
  readonly event: ScheduledEvent
  readonly generation: number
  /** How often each `{status}:{digest16}` was reported in this generation; newest last, bounded. */
  readonly reported: Readonly<Record<string, number>>
  /** Incarnation of the last document that held it. */
  readonly incarnation: number | string | null
  readonly epoch: number
  /** Last NotBefore that was not null. */
  readonly lastNotBefore: string | null
  readonly scheduledObserved: boolean
  /** Milliseconds since the epoch, of our first sight of each status; null where never seen. */
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  /** Our own StartRequests POST was answered 200. */
  readonly approved: boolean
  /** Went from Started back to Scheduled, which is documented as impossible: never to be approved automatically. */
  readonly anomalous: boolean
}

/** What is remembered of an event that ended, so that the same id again is the next generation. */
export interface EndedEvent {
  readonly generation: number
  readonly endedAt: number
}

export interface RememberedState {
  readonly vmId: string | null
  readonly bootId: string | null
  /** Milliseconds since the epoch of the last reading that was accepted whole; null before the first. */
  readonly lastGoodPollAt: number | null
  readonly incarnation: number | string | null
  /** Counts the confirmed restarts of the incarnation. */
  readonly epoch: number
  /** The last reading had a lower incarnation: a stale replica, or the first of a restart. */
  readonly lowerReading: boolean
  /** By EventId folded to lower case. */
  readonly live: Readonly<Record<string, LiveEvent>>
  readonly ended: Readonly<Record<string, EndedEvent>>
  /** Digests of the broken contents that were already told, newest last, bounded. */
  readonly toldAnomalies: readonly string[]
}

type Rule = 'A' | 'B' | 'C' | 'D' | 'started' | 'status'

/** Why an end was judged as it was. */
export interface Evidence {
  /** The rule that decided; `started`: it had started, so it ran; `status`: the document itself said so. */
  readonly rule: Rule
  /** Incarnation now minus incarnation last seen; null where either is unknown. */
  readonly d: number | null
  /** Seconds between the last good reading before and this one. */
  readonly gapSeconds: number
  /** null where the platform has no boot id. */
  readonly bootChanged: boolean | null
  /** Where an uncertain verdict leans one way. */
  readonly likely?: 'completed' | 'cancelled'
  /** Why nothing was concluded: gap over 24 h, incarnation restarted, an entry that may be this very event, or contradicting signs. */
  readonly inconclusive?: 'gap' | 'restart' | 'unreadable' | 'contradiction'
}

export interface Change {
  readonly field: keyof EventContent
  readonly from: string | number | null | readonly string[]
  readonly to: string | number | null | readonly string[]
}

/** What all transitions have in common. */
interface TransitionBase {
  /** Folded EventId. */
  readonly key: string
  readonly generation: number
  /** The event as it stands in the document; for an end, as it stood last. */
  readonly event: ScheduledEvent
  /** The NotBefore to tell: the event's own; once it is past Scheduled and has none, the last known one. */
  readonly notBefore: string | null
  /** Incarnation of the document that brought the transition. */
  readonly incarnation: number | string | null
  /** Milliseconds since the epoch of the first observation. */
  readonly at: number
  readonly scheduledObserved: boolean
  /** The id had ended before and stands here for the first time again. */
  readonly reappeared: boolean
  /** A departure from the documented life cycle. */
  readonly anomaly?: 'started-to-scheduled' | 'same-incarnation'
}

/** The event stands in the document in this state. `status` is `scheduled`, `started` or the unknown status, lower-case `[a-z0-9]`. */
export interface StateTransition extends TransitionBase {
  readonly kind: 'state'
  readonly status: string
  /** First 16 hex digits of the digest of the content. */
  readonly digest16: string
  /** 1 for the first report of this very state within the generation, 2 for a state that came back, and so on. */
  readonly repeat: number
  /** Against the state before; empty for a new event. */
  readonly changes: readonly Change[]
}

/** The event is over. */
export interface EndTransition extends TransitionBase {
  readonly kind: 'end'
  readonly outcome: 'completed' | 'cancelled' | 'vanished'
  readonly evidence: Evidence
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  readonly endedAt: number
  readonly gapSeconds: number
}

export type Transition = StateTransition | EndTransition

/** Something odd in the input, told once per distinct content: for logs and metrics, never an event of its own. */
export interface Anomaly {
  readonly kind:
    | 'broken-entry'
    | 'duplicate-id'
    | 'same-incarnation'
    | 'started-to-scheduled'
    | 'lower-incarnation'
    | 'incarnation-restarted'
  /** Folded EventId where it is about one event. */
  readonly key: string | null
  readonly detail: string
}

export interface DiffResult {
  readonly state: RememberedState
  /** In the order in which they are to be published: ends first, then by NotBefore and key. */
  readonly transitions: readonly Transition[]
  readonly anomalies: readonly Anomaly[]
}
