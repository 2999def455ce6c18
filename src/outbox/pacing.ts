import { retryDelayMs, type Retry } from './retry-schedule.ts'

/** How hard one sink may be driven: how many deliveries at once, and from when. */
export interface Pacing {
  /** Deliveries that may be in flight: the full concurrency, halved for each failure in a row, 1 at least. */
  limit(): number
  /** Nothing is started before (milliseconds since the epoch); 0 where nothing holds. */
  heldUntil(): number
  succeeded(): void
  /** `attempts` counts those of this event, this one included. `outlives`: the hold was asked for, so it is to survive a restart. */
  failed(retry: Retry, attempts: number, startedAt: number): { readonly nextAttemptAt: number; readonly outlives: boolean }
  /** A hold from before a restart. */
  hold(until: number): void
  /** Forgets holds and failures: the operator says that the sink works again. */
  reset(): void
}

/** With one delivery at a time and a sink that fails within a millisecond, this is what keeps a backlog from being hammered at it. */
const probeMs = 1000
const failuresBeforeProbing = 5
/** Refusals in a row, without a success in between, after which they are the sink's and not an event's; and how long it is held then at most. */
const leastRefusals = 3
const longestRefusedHoldMs = 5_000

export function createPacing({
  concurrency,
  now,
  random,
}: {
  readonly concurrency: number
  readonly now: () => number
  readonly random: () => number
}): Pacing {
  let failures = 0
  /** Their wait grows with rounds of failing, not with attempts of one event: credentials and targets are the sink's. */
  let refusals = 0
  let refusedAt = 0
  let askedHold = 0
  let ownHold = 0
  const limit = (): number => Math.max(1, Math.floor(concurrency / 2 ** Math.min(failures, 30)))

  return {
    limit,
    heldUntil: () => Math.max(askedHold, ownHold),
    succeeded() {
      failures = 0
      refusals = 0
      ownHold = 0
    },
    failed(retry, attempts, startedAt) {
      failures += 1
      const at = now()
      if (retry.because === 'refused' || retry.because === 'stopped') {
        // Deliveries that were in flight together are one round.
        if (refusals === 0 || startedAt > refusedAt) refusals += 1
        refusedAt = at
        const nextAttemptAt = at + retryDelayMs(retry, refusals, random)
        // One event that is refused says nothing of the others, and a fresh Preempt must not wait for long behind it.
        if (failures >= Math.max(concurrency, leastRefusals))
          ownHold = Math.max(ownHold, Math.min(nextAttemptAt, at + longestRefusedHoldMs))
        return { nextAttemptAt, outlives: false }
      }
      const nextAttemptAt = at + retryDelayMs(retry, attempts, random)
      if (retry.because === 'throttled' && retry.retryAfterMs !== undefined) {
        askedHold = Math.max(askedHold, nextAttemptAt)
        return { nextAttemptAt, outlives: true }
      }
      if (failures >= failuresBeforeProbing && limit() === 1) ownHold = Math.max(ownHold, at + Math.round(probeMs * (0.5 + random() / 2)))
      return { nextAttemptAt, outlives: false }
    },
    hold(until) {
      askedHold = until
    },
    reset() {
      failures = 0
      refusals = 0
      askedHold = 0
      ownHold = 0
    },
  }
}
