import type { SinkLog } from '../../sinks/contract.ts'
import type { DeliveryState } from './overview.ts'
import type { Store } from './store.ts'
import { createStoreGuard } from './store-guard.ts'

export interface Janitor {
  /** One clean-up now, then one a minute. Idempotent. */
  start(): void
  /** Idempotent. */
  close(): void
}

const everyMs = 60_000

/**
 * Takes out of the outbox what has reached the end of its time, step by step, so that polls and deliveries go on in between. Every delivery
 * that is given up is told (`onPruned` with `pending`, and a warning); so is the number of settled ones that were removed.
 */
export function createJanitor(options: {
  readonly store: Pick<Store, 'prune'>
  readonly log: SinkLog
  readonly onPruned?: (sink: string, state: DeliveryState, count: number) => void
}): Janitor {
  const { store, log, onPruned } = options
  const guard = createStoreGuard({ name: 'all sinks', log, retry: () => step() })
  let timer: NodeJS.Timeout | undefined
  let state: 'new' | 'running' | 'closed' = 'new'

  function step(): void {
    let more = false
    guard.attempt(() => {
      const pruned = store.prune()
      more = pruned.more
      for (const { sink, id, attempts } of pruned.expired) {
        log.warn({ sink, id, code: 'expired', attempts }, `an event is a dead letter of the sink ${sink}: its time ran out`)
        onPruned?.(sink, 'pending', 1)
      }
      for (const { sink, state, count } of pruned.removed) {
        log.info({ sink, state, count }, `${count} ${state} deliveries of the sink ${sink} reached the end of their time and are removed`)
        onPruned?.(sink, state, count)
      }
    })
    clearTimeout(timer)
    if (state === 'running' && !guard.failing()) timer = setTimeout(step, more ? 1 : everyMs)
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'running'
      step()
    },
    close() {
      state = 'closed'
      clearTimeout(timer)
      guard.close()
    },
  }
}
