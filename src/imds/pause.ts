/** The longest sleep without a look at the clock. */
const sliceMs = 1_000

/**
 * Waits, and notices when more time has passed than was slept: timers stand still while a machine is suspended or frozen, the clock does not.
 * Resolves early, and quietly, when `signal` aborts.
 */
export async function pause(ms: number, options: { readonly signal: AbortSignal; readonly now: () => number }): Promise<void> {
  const { signal, now } = options
  let left = ms
  while (left > 0 && !signal.aborted) {
    const before = now()
    const slice = Math.min(left, sliceMs)
    await sleep(slice, signal)
    // A clock that was set back must not lengthen the wait.
    left -= Math.max(now() - before, slice)
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
