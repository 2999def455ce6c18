import { pause } from '../imds/pause.ts'

export interface Budget {
  /** Resolves when one more request may go out. Rejects with the reason of `signal`. */
  take(signal: AbortSignal): Promise<void>
}

const windowMs = 1000

/**
 * Holds requests to so many in any second. IMDS allows 5 requests/s to all agents of a VM together; approvals go beside the polls, never behind
 * them, so they leave room for those.
 */
export function createBudget(perSecond: number, now: () => number): Budget {
  let taken: number[] = []
  return {
    async take(signal) {
      for (;;) {
        signal.throwIfAborted()
        const at = now()
        // A clock that was set back must not stop everything.
        taken = taken.filter((before) => before > at - windowMs && before <= at)
        const [oldest] = taken
        if (oldest === undefined || taken.length < perSecond) {
          taken.push(at)
          return
        }
        await pause(oldest + windowMs - at, { signal, now })
      }
    },
  }
}
