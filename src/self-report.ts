import { buildForwarderEvent } from './events/forwarder-event.ts'
import type { Identity, Scope } from './events/identity.ts'
import type { ForwarderKind } from './events/severity.ts'
import type { HealthChange, ImdsHealth } from './imds/health.ts'
import type { RememberedState } from './lifecycle/model.ts'
import type { Store } from './outbox/store.ts'
import type { Publisher } from './publisher.ts'

export interface SelfReportOptions {
  readonly publisher: Publisher
  readonly store: Pick<Store, 'summarize'>
  readonly identity: () => Identity | null
  readonly remembered: () => RememberedState
  readonly imds: () => ImdsHealth
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
  /** A turn in the health of IMDS. Throws what the store throws. */
  turn(change: HealthChange): void
}

export function createSelfReport(options: SelfReportOptions): SelfReport {
  const { publisher, store, identity, remembered, imds, prefix, scope, version, startedAt, now } = options
  let waiting: { readonly kind: ForwarderKind; readonly at: number; readonly imds: ReturnType<typeof imdsNow> }[] = []
  /** Of the last trouble; told once more when it is over. */
  let lastTrouble: string | null = null

  const imdsNow = () => {
    const health = imds()
    const trouble = health.state === 'ok' ? undefined : health.state === 'warming-up' ? health.trouble : health
    return { lastGoodPollAt: remembered().lastGoodPollAt, failures: trouble?.failures ?? 0, lastError: trouble?.detail ?? null }
  }

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

  const tell = (kind: ForwarderKind, at = now(), overrides: Partial<ReturnType<typeof imdsNow>> = {}): void => {
    waiting.push({ kind, at, imds: { ...imdsNow(), ...overrides } })
    catchUp()
  }

  return {
    tell: (kind, at) => tell(kind, at),
    catchUp,
    turn(change) {
      // A recovery comes before the document that brought it is taken in: the last good poll is still the one before the outage.
      if (change.kind === 'recovered') {
        if (change.wasUnreachable) tell('imds-recovered', change.at, { failures: change.failures, lastError: lastTrouble })
        return
      }
      lastTrouble = change.detail
      if (change.kind === 'unreachable') tell('imds-unreachable', change.at)
    },
  }
}
