/** Renewing late is losing: a renewal takes a round trip, and the clocks differ. */
const shortestMs = 250

/**
 * Renews a lock at half of what is left of it, again and again, until `stop`. A renewal that fails is told once and not tried again: the lock
 * then runs out, and the broker gives the message to whoever comes next.
 */
export function keepLock(options: {
  /** Milliseconds since the epoch; asked again after each renewal. */
  readonly lockedUntil: () => number | null
  readonly renew: () => Promise<void>
  readonly now: () => number
  readonly onLost: (error: unknown) => void
}): { stop(): void } {
  const { lockedUntil, renew, now, onLost } = options
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const schedule = (): void => {
    const until = lockedUntil()
    if (stopped || until === null) return
    timer = setTimeout(
      () => {
        renew().then(schedule, (error: unknown) => {
          if (!stopped) onLost(error)
        })
      },
      Math.max((until - now()) / 2, shortestMs),
    )
  }
  schedule()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
