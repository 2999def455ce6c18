import type { DeliveryOutcome } from '../../sinks/contract.ts'

export type Retry = Extract<DeliveryOutcome, { status: 'retry' }>

/** Longest wait that another side may ask for: what it says is not checked, and a wrong header must not silence a sink for days. */
export const longestRetryAfterMs = 60 * 60 * 1000

/**
 * Waits double from `minMs` to `maxMs`. `floor` is the share of the wait that is not left to chance: none where many clients must not come
 * back together (full jitter), half where only a person can help and trying soon is useless.
 */
const schedules: Record<Retry['because'], { readonly minMs: number; readonly maxMs: number; readonly floor: number }> = {
  transient: { minMs: 250, maxMs: 30_000, floor: 0 },
  throttled: { minMs: 250, maxMs: 30_000, floor: 0 },
  refused: { minMs: 5_000, maxMs: 30_000, floor: 0.5 },
  stopped: { minMs: 5_000, maxMs: 30_000, floor: 0.5 },
}

/** Milliseconds to wait after failure number `failures` (1 is the first) in a row. What the other side asked for wins. */
export function retryDelayMs({ because, retryAfterMs }: Retry, failures: number, random: () => number): number {
  if (retryAfterMs !== undefined && Number.isFinite(retryAfterMs)) return Math.min(Math.max(retryAfterMs, 0), longestRetryAfterMs)
  const { minMs, maxMs, floor } = schedules[because]
  const wait = Math.min(maxMs, minMs * 2 ** Math.min(failures - 1, 30))
  return Math.round(wait * (floor + (1 - floor) * random()))
}
