import type { DeliveryOutcome } from './contract.ts'

/** The outcome of a delivery that its `signal` ended: the time limit where that was the reason, else a stop of the forwarder. */
export function interrupted(signal: AbortSignal): DeliveryOutcome {
  const timedOut = signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
  return timedOut
    ? { status: 'retry', because: 'transient', code: 'timeout', detail: 'no answer within the time limit' }
    : { status: 'retry', because: 'transient', code: 'aborted', detail: 'stopped before the other side answered' }
}

/**
 * Runs what cannot be called back (a write under way) and stops waiting for it when the signal aborts. An event may still arrive: that is one of
 * the duplicates that at-least-once allows. Not even started when the signal has aborted before.
 */
export async function untilAborted<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T | DeliveryOutcome> {
  if (signal.aborted) return interrupted(signal)
  const aborted = Promise.withResolvers<DeliveryOutcome>()
  const onAbort = (): void => aborted.resolve(interrupted(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([run(), aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
