import type { SinkLog } from '../../sinks/contract.ts'
import type { Retry } from './retry-schedule.ts'

interface Trouble {
  /** Milliseconds since the epoch of the first failure in a row. */
  readonly since: number
  /** Those of the last failure. */
  readonly code: string
  readonly detail: string
  readonly consecutiveFailures: number
}

/**
 * `failing`: down, slow or throttled, mends itself. `refused`: credentials or a missing entity, needs a person, is tried slowly.
 * `halted`: stands still until `outbox replay`, also across restarts.
 */
export type SinkHealth =
  | { readonly state: 'ok' }
  | ({ readonly state: 'failing' | 'refused' } & Trouble)
  | { readonly state: 'halted'; readonly reason: string }

export interface HealthKeeper {
  current(): SinkHealth
  succeeded(): void
  failed(retry: Retry): void
  halted(reason: string): void
  resumed(): void
}

/** Keeps the health of one sink, and tells each change of it once: not a line per attempt. */
export function createHealthKeeper({
  name,
  now,
  log,
}: {
  readonly name: string
  readonly now: () => number
  readonly log: SinkLog
}): HealthKeeper {
  let health: SinkHealth = { state: 'ok' }

  return {
    current: () => health,
    succeeded() {
      if (health.state === 'ok' || health.state === 'halted') return
      const { since, consecutiveFailures } = health
      health = { state: 'ok' }
      const seconds = Math.round((now() - since) / 1000)
      log.info({ sink: name, seconds, failures: consecutiveFailures }, `the sink ${name} works again`)
    },
    failed({ because, code, detail }) {
      if (health.state === 'halted') return
      const state = because === 'refused' || because === 'stopped' ? 'refused' : 'failing'
      const before = health
      const first = { since: now(), consecutiveFailures: 0 }
      const { since, consecutiveFailures } = before.state === 'ok' ? first : before
      health = { state, since, code, detail, consecutiveFailures: consecutiveFailures + 1 }
      if (before.state === 'ok' && state === 'failing') {
        log.warn({ sink: name, code, detail }, `the sink ${name} fails; its events wait and are tried again`)
      } else if (state === 'refused' && before.state !== 'refused') {
        log.error(
          { sink: name, code, detail },
          `the sink ${name} refuses us; its events wait: check its credentials and target, try foreshock doctor`,
        )
      }
    },
    halted(reason) {
      if (health.state === 'halted') return
      health = { state: 'halted', reason }
      log.error({ sink: name, reason }, `the sink ${name} is halted; its events wait until: foreshock outbox replay --sink ${name}`)
    },
    resumed() {
      if (health.state !== 'halted') return
      health = { state: 'ok' }
      log.info({ sink: name }, `the sink ${name} is resumed`)
    },
  }
}
