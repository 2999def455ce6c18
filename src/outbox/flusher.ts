import type { Judged } from './judge.ts'

/** Outcomes on their way into the store. */
export interface Flusher {
  /** `atOnce`: something waits for it, so it is written in this turn of the event loop; else within a few milliseconds, with those that come meanwhile. */
  add(judged: Judged, atOnce: boolean): void
  waiting(): readonly Judged[]
  /** Writes what waits now. */
  flush(): void
}

/** Outcomes that wait for each other at most, and for how long: bounds what is sent twice after a crash. */
const most = 64
const longestMs = 4

/**
 * Gathers outcomes, because most of what writing one costs is the transaction. `write` is called with all that wait, in their order; where it gives
 * false they stay, and `flush` is to be called again.
 */
export function createFlusher(write: (batch: readonly Judged[]) => boolean): Flusher {
  let waiting: Judged[] = []
  let immediate: NodeJS.Immediate | undefined
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearImmediate(immediate)
    clearTimeout(timer)
    immediate = undefined
    timer = undefined
    if (waiting.length === 0) return
    const batch = waiting
    waiting = []
    if (!write(batch)) waiting = [...batch, ...waiting]
  }

  return {
    add(judged, atOnce) {
      waiting.push(judged)
      if (atOnce || waiting.length >= most) immediate ??= setImmediate(flush)
      else timer ??= setTimeout(flush, longestMs)
    },
    waiting: () => waiting,
    flush,
  }
}
