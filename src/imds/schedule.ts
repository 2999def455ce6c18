/** IMDS allows 5 requests/s to all agents of a VM together: after a failure never closer than that. */
const budgetMs = 200
/** Preempt gives 30 s of notice at best: when a fault has passed, at most a third of them may be lost in waiting. */
const longestBackoffMs = 10_000
/** No wait that IMDS asks for is longer than the notice of a Preempt, not even the 70 s that it may be moved for (410). */
const longestAskedMs = 30_000

/**
 * When to poll next after a success, in milliseconds since the epoch. Due times lie on a grid, so the cadence does not drift with the time
 * that polls take; a due time that passed meanwhile, or follows the start of the last poll closer than half an interval, is left out.
 *
 * @param due the due time that the last poll served
 * @param startedAt when that poll really started
 */
export function nextDue(due: number, startedAt: number, now: number, intervalMs: number): number {
  const earliest = Math.max(now, startedAt + intervalMs / 2)
  const next = due + Math.max(1, Math.ceil((earliest - due) / intervalMs)) * intervalMs
  // Further off only where the clock was set back: a new grid.
  return next > now + 1.5 * intervalMs ? now + intervalMs : next
}

/**
 * Milliseconds to wait after the `failures`-th failure in a row: from the interval, doubling to 10 s, up to a quarter less by chance. What
 * the other side asked for wins.
 *
 * @param random a number in [0, 1)
 */
export function delayAfterFailureMs(failures: number, intervalMs: number, retryAfterMs: number | undefined, random: number): number {
  const shortest = Math.max(intervalMs, budgetMs)
  if (retryAfterMs !== undefined) return Math.max(Math.min(retryAfterMs, longestAskedMs), shortest)
  const doubled = Math.min(shortest * 2 ** (failures - 1), longestBackoffMs)
  return Math.max(doubled * (1 - random / 4), shortest)
}

/** What speaks against this interval, for people; undefined where nothing does. */
export function intervalWarning(intervalMs: number): string | undefined {
  if (intervalMs > longestBackoffMs) {
    return `imds.pollIntervalMs is ${intervalMs}: Preempt gives 30 s of notice at best, and an event may start and end between two polls; 1000 is advised`
  }
  if (intervalMs < 250) {
    return `imds.pollIntervalMs is ${intervalMs}: IMDS allows 5 requests per second to all agents of the VM together; 1000 is advised`
  }
  return undefined
}
