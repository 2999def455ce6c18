import { buildForwarderEvent } from './events/forwarder-event.ts'
import type { Identity, Scope } from './events/identity.ts'
import type { ForwarderKind } from './events/severity.ts'
import type { HealthChange } from './imds/health.ts'
import type { RememberedState } from './lifecycle/model.ts'
import type { Store } from './outbox/store.ts'
import type { Publisher } from './publisher.ts'

export interface SelfReportOptions {
  readonly publisher: Publisher
  readonly store: Pick<Store, 'summarize'>
  readonly identity: () => Identity | null
  readonly remembered: () => RememberedState
  readonly prefix: string
  readonly scope: Scope
  readonly version: string
  readonly startedAt: number
  readonly now: () => number
}

/** Events about the forwarder itself: started, stopping, heartbeat, imds-unreachable, imds-recovered. */
export interface SelfReport {
  /** Takes the event in and publishes it as soon as this VM is known: its source depends on that. Throws what the store throws. */
  tell(kind: ForwarderKind, at?: number): void
  /** Publishes what had to wait. Throws what the store throws; what waits goes on waiting. */
  catchUp(): void
  /** IMDS gave a document. */
  good(at: number): void
  /** A turn in the health of IMDS. Throws what the store throws. */
  turn(change: HealthChange): void
}

export function createSelfReport(options: SelfReportOptions): SelfReport {
  const { publisher, store, identity, remembered, prefix, scope, version, startedAt, now } = options
  let imds = { lastGoodPollAt: remembered().lastGoodPollAt, failures: 0, lastError: null as string | null }
  let waiting: { readonly kind: ForwarderKind; readonly at: number; readonly imds: typeof imds }[] = []

  const catchUp = (): void => {
    const known = waiting.length === 0 ? null : identity()
    if (known === null) return
    const outbox = Object.fromEntries(store.summarize().map(({ name, pending }) => [name, pending]))
    const status = { version, startedAt, state: remembered(), outbox }
    const context = { prefix, scope, identity: known }
    publisher.publish(
      waiting.map((one) => ({ event: buildForwarderEvent(one.kind, one.at, { ...status, ...one.imds }, context), affectsThisVm: null })),
    )
    waiting = []
  }

  const tell = (kind: ForwarderKind, at = now()): void => {
    waiting.push({ kind, at, imds })
    catchUp()
  }

  return {
    tell,
    catchUp,
    good(at) {
      imds = { lastGoodPollAt: at, failures: 0, lastError: null }
    },
    turn(change) {
      // Comes before `good`, so a recovery tells when the last good poll was and what it met since.
      if (change.kind === 'recovered') {
        if (change.wasUnreachable) tell('imds-recovered', change.at)
        return
      }
      imds = { ...imds, failures: change.failures, lastError: change.detail }
      if (change.kind === 'unreachable') tell('imds-unreachable', change.at)
    },
  }
}
