import type { z } from 'zod'
import type { CloudEvent } from './cloud-event.ts'

/**
 * What became of one attempt to deliver one event. The outbox owns the retry: a sink tries once and classifies.
 *
 * - `delivered`: the other side has it, durably as far as it says.
 * - `retry`: not now. `because` decides how loud and how fast:
 *   `transient` (connection lost, time-out, 5xx) backs off and retries, `throttled` the same and holds back the whole sink for
 *   `retryAfterMs`, `refused` (credentials, missing entity, disabled) retries slowly and turns the health of the sink red, and
 *   `stopped` halts the sink until the operator resumes it, also across restarts (HTTP 410).
 * - `rejected`: never. The event becomes a dead letter with `code` and `detail`.
 *
 * `code` is a short stable word (`http_503`, `timeout`, `too_large`); `detail` is one line for people, without secrets.
 */
export type DeliveryOutcome =
  | { readonly status: 'delivered' }
  | {
      readonly status: 'retry'
      readonly because: 'transient' | 'throttled' | 'refused' | 'stopped'
      readonly code: string
      readonly detail: string
      /** What the other side asked for, in milliseconds from now. Wins over the backoff of the outbox. */
      readonly retryAfterMs?: number
    }
  | { readonly status: 'rejected'; readonly code: string; readonly detail: string }

export const delivered: DeliveryOutcome = { status: 'delivered' }

/** Whether the sink would work now. `cure` says what to do where it would not. */
export type CheckResult =
  | { readonly ok: true; readonly detail: string }
  | { readonly ok: false; readonly detail: string; readonly cure: string }

/** The part of pino's logger that sinks use: an object with fields first, then the message. */
export interface SinkLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The option `format`. */
export type FormatName = 'cloudevents' | 'azure-resource-log' | 'ecs' | 'splunk-hec'

/** A shape in which one event is written as text. */
export interface EventFormat {
  readonly name: FormatName
  /** Media type of the text, with its charset where it has one. */
  readonly contentType: string
  /** One line of JSON. Pure: the same event gives the same text on every retry. */
  readonly write: (event: CloudEvent) => string
}

/** What the forwarder hands to a sink when it opens it. */
export interface SinkContext {
  /** `name` of the configuration: unique, and the label in logs and metrics. */
  readonly name: string
  readonly log: SinkLog
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Name and version of this program, for a User-Agent. */
  readonly agent: string
  /** One of the `formats` of the definition, as the configuration chose. The modes of CloudEvents (`binary`) are the sink's own. */
  readonly format: EventFormat
  /** The environment of the process, for proxies and for the commands that a sink starts. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** How long the outbox tries to deliver an event, for sinks that can tell the other side. */
  readonly maxAgeSeconds: number
}

/**
 * An open sink. The dispatcher calls `deliver` for up to `concurrency` events at once, but never for two of one lane.
 *
 * A sink MUST resolve within its time-out once `signal` aborts, MUST NOT retry by itself, MUST NOT change the event, MUST leave nothing
 * open after `close()`, and SHOULD NOT throw from `deliver`: what it throws all the same is taken as `retry`, `transient`.
 */
export interface Sink {
  deliver(event: CloudEvent, options: { readonly signal: AbortSignal }): Promise<DeliveryOutcome>
  /** Proves that delivery would work, needing no right that delivering itself does not need, and leaving nothing behind. */
  check(options: { readonly signal: AbortSignal }): Promise<CheckResult>
  /** Idempotent. Called when nothing is in flight. */
  close(): Promise<void>
}

/**
 * A sink as data: the default export of each file here, and of a custom module.
 *
 * `options` is a strict zod object of what this sink adds to the common options; validation, JSON Schema and documentation come from it,
 * so each key carries a `.describe(…)`.
 */
export interface SinkDefinition<Options extends z.ZodObject = z.ZodObject> {
  /** The word in the configuration, equal to the file name. */
  readonly type: string
  /** One line for the documentation. */
  readonly summary: string
  readonly options: Options
  /** What `format` may be; `cloudevents` alone where it is missing. */
  readonly formats?: readonly FormatName[]
  /** The option, as it is written, by which the sink decides the whole body itself: with it, no other `format` can be had. */
  ownBody?(options: z.output<Options>): string | undefined
  /** Where the table of the contract gives this sink other defaults than the common ones. */
  readonly defaults?: { readonly maxAgeSeconds?: number; readonly concurrency?: number; readonly timeoutSeconds?: number }
  /** Loads heavy dependencies lazily and connects where that is needed. Throws `ForeshockError` `sink_unusable`. */
  open(options: z.output<Options>, context: SinkContext): Promise<Sink>
}

/** Gives the definition its types; the identity otherwise. */
export function defineSink<Options extends z.ZodObject>(definition: SinkDefinition<Options>): SinkDefinition<Options> {
  return definition
}
