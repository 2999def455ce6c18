import type { Failure, FailureReason } from './failure.ts'

/** The first answer for a VM may take two minutes: until then no answer is no fault. */
const warmUpMs = 120_000

interface Trouble {
  /** Milliseconds since the epoch, of the first failure in a row. */
  readonly since: number
  /** Failures in a row. */
  readonly failures: number
  readonly lastReason: FailureReason
  readonly detail: string
}

/** How IMDS is, for readiness and status. `since` is in milliseconds since the epoch. */
export type ImdsHealth =
  /** No document yet, and the first two minutes are not over. */
  | { readonly state: 'warming-up'; readonly since: number; readonly trouble?: Trouble }
  | { readonly state: 'ok'; readonly since: number }
  | ({ readonly state: 'failing' } & Trouble)
  /** Failing for as many times as the configuration says. */
  | ({ readonly state: 'unreachable' } & Trouble)

/** A turn in the health, told once. `at` and `since` are in milliseconds since the epoch. */
export type HealthChange =
  /** The first failure in a row, or the first of a reason that was not told since then. */
  | ({ readonly kind: 'failing'; readonly at: number } & Trouble)
  | ({ readonly kind: 'unreachable'; readonly at: number } & Trouble)
  | {
      readonly kind: 'recovered'
      readonly at: number
      readonly since: number
      readonly durationMs: number
      readonly failures: number
      /** `unreachable` was told before. */
      readonly wasUnreachable: boolean
    }

export interface HealthTracker {
  succeeded(at: number): readonly HealthChange[]
  failed(failure: Failure, at: number): readonly HealthChange[]
  at(now: number): ImdsHealth
}

/** Counts failures in a row. Warming up, they are told but make nothing unreachable. */
export function trackHealth(startedAt: number, unreachableAfterFailures: number): HealthTracker {
  let okSince: number | null = null
  let trouble: Trouble | null = null
  let told = new Set<FailureReason>()
  let unreachable = false

  const warmingUp = (now: number): boolean => okSince === null && now - startedAt < warmUpMs

  return {
    succeeded(at) {
      const over = trouble
      const wasUnreachable = unreachable
      if (over !== null || okSince === null) okSince = at
      trouble = null
      told = new Set()
      unreachable = false
      if (over === null) return []
      return [{ kind: 'recovered', at, since: over.since, durationMs: at - over.since, failures: over.failures, wasUnreachable }]
    },

    failed({ reason, detail }, at) {
      trouble = { since: trouble?.since ?? at, failures: (trouble?.failures ?? 0) + 1, lastReason: reason, detail }
      const changes: HealthChange[] = []
      if (!told.has(reason)) {
        told.add(reason)
        changes.push({ kind: 'failing', at, ...trouble })
      }
      if (!unreachable && trouble.failures >= unreachableAfterFailures && !warmingUp(at)) {
        unreachable = true
        changes.push({ kind: 'unreachable', at, ...trouble })
      }
      return changes
    },

    at(now) {
      if (warmingUp(now)) return { state: 'warming-up', since: startedAt, ...(trouble && { trouble }) }
      if (trouble !== null) return { state: unreachable ? 'unreachable' : 'failing', ...trouble }
      if (okSince !== null) return { state: 'ok', since: okSince }
      return { state: 'failing', since: startedAt, failures: 0, lastReason: 'timeout', detail: 'no answer to the first request yet' }
    },
  }
}
