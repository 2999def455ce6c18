import type { SinkLog } from '../../sinks/contract.ts'
import { isStoreFailure } from './store-failure.ts'

/** Keeps work on the outbox going over a store that fails for a while. */
export interface StoreGuard {
  /** False where the store failed. What else is thrown is a fault of the program and passes. */
  attempt(work: () => void): boolean
  /** Between a failure and the next try. */
  failing(): boolean
  /** Idempotent. */
  close(): void
}

const retryMs = 1000

/**
 * The disk is full, the file damaged, or another process kept the write lock: whoever works pauses, which is told once, and `retry` is called
 * a second later, again and again until it passes.
 */
export function createStoreGuard({
  name,
  log,
  retry,
}: {
  readonly name: string
  readonly log: SinkLog
  readonly retry: () => void
}): StoreGuard {
  let failing = false
  let told = false
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function tryAgain(): void {
    timer = undefined
    failing = false
    retry()
    if (failing) return
    told = false
    log.info({ sink: name }, `the outbox works again, deliveries to ${name} go on`)
  }

  return {
    attempt(work) {
      try {
        work()
        return true
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        failing = true
        if (!told) log.error({ sink: name, code: error.code }, `the outbox fails, deliveries to ${name} pause: ${error.message}`)
        told = true
        if (!closed) timer ??= setTimeout(tryAgain, retryMs)
        return false
      }
    },
    failing: () => failing,
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
