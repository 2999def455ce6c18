import type { SinkLog } from '../sinks/contract.ts'
import type { ConfiguredSink } from './config/sinks.ts'
import type { Identity } from './events/identity.ts'
import type { Logger } from './log.ts'
import { createDispatcher } from './outbox/dispatcher.ts'
import type { Store } from './outbox/store.ts'
import { eventFormat } from './registry.ts'
import { selfOpening } from './sink-opener.ts'
import type { SinkStatus } from './status.ts'
import { agent } from './version.ts'

export interface SinkGroupOptions {
  readonly sinks: readonly ConfiguredSink[]
  readonly store: Store
  /** Who this VM is, as well as that is known; for the formats that name the reporter. */
  readonly reporter: () => Identity | null
  readonly env: NodeJS.ProcessEnv
  readonly now: () => number
  readonly random: () => number
  readonly log: Logger
  /** An attempt was settled; the latency is that from detection to delivered, null for everything else. */
  readonly onDelivery: (sink: string, outcome: 'delivered' | 'retry' | 'rejected' | 'expired', latencySeconds: number | null) => void
}

/** All configured sinks, each with its dispatcher: one that is down, slow or hanging holds up no other. */
export interface SinkGroup {
  /** Opens the sinks in the background and delivers from now on. Idempotent. */
  start(): void
  /** Something was committed. */
  wake(): void
  /** Delivers what is due until nothing is, or `signal` aborts. */
  drain(signal: AbortSignal): Promise<void>
  statuses(): readonly SinkStatus[]
  /** At once: whatever is in flight stays in the outbox. */
  close(): Promise<void>
}

export function createSinkGroup(options: SinkGroupOptions): SinkGroup {
  const { store, now } = options
  warnOfForgotten(options)
  const members = options.sinks.map((configured) => member(configured, options))
  return {
    start() {
      for (const { sink, dispatcher } of members) {
        sink.warm()
        dispatcher.start()
      }
    },
    wake() {
      for (const { dispatcher } of members) dispatcher.wake()
    },
    async drain(signal) {
      await Promise.all(members.map(({ dispatcher }) => dispatcher.drain({ signal })))
    },
    statuses() {
      const summaries = new Map(store.summarize().map((summary) => [summary.name, summary]))
      return members.map(({ configured: { name, type }, dispatcher }) => {
        const { pending = 0, dead = 0, oldestPendingAt = null } = summaries.get(name) ?? {}
        return { name, type, health: dispatcher.health(), pending, dead, oldestPendingAt }
      })
    },
    async close() {
      // Side by side: one that is slow to close does not make the others wait.
      await Promise.all(members.map(({ dispatcher, sink }) => dispatcher.close().then(() => sink.close())))
    },
  }

  function member(configured: ConfiguredSink, { reporter, env, random, log, onDelivery }: SinkGroupOptions) {
    const { name, format, maxAgeSeconds, concurrency, timeoutSeconds } = configured
    const context = { name, log: log.child({ sink: name }), now, agent, format: eventFormat(format, reporter), env, maxAgeSeconds }
    const sink = selfOpening(configured, context)
    const dispatcher = createDispatcher({
      store,
      sink,
      name,
      concurrency,
      timeoutMs: timeoutSeconds * 1000,
      now,
      random,
      log,
      onSettled: (_, outcome, { latencyMs }) => {
        const expired = outcome.status === 'rejected' && outcome.code === 'expired'
        onDelivery(name, expired ? 'expired' : outcome.status, outcome.status === 'delivered' ? latencyMs / 1000 : null)
      },
    })
    return { configured, sink, dispatcher }
  }
}

/** Deliveries of sinks that the configuration no longer has run out of time like all others; until then they are worth a word. */
function warnOfForgotten({ store, sinks, log }: { store: Store; sinks: readonly ConfiguredSink[]; log: SinkLog }): void {
  for (const { name, pending } of store.summarize()) {
    if (pending > 0 && !sinks.some((sink) => sink.name === name)) {
      log.warn(
        { sink: name, pending },
        'events wait for a sink that the configuration does not have: add it again, or drop them with: foreshock outbox drop --sink',
      )
    }
  }
}
