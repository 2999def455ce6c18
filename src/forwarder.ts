import { startAdmin } from './admin/server.ts'
import { createMetrics } from './admin/metrics.ts'
import type { Config } from './config/load.ts'
import { buildForwarderEvent } from './events/forwarder-event.ts'
import type { ForwarderKind } from './events/severity.ts'
import { createIdentity } from './identity.ts'
import type { EventsResult } from './imds/client.ts'
import { connectImds } from './imds/connect.ts'
import { incarnationNumber } from './imds/document.ts'
import { createPoller } from './imds/poller.ts'
import { readVm } from './imds/vm.ts'
import type { EventsDocument } from './lifecycle/model.ts'
import type { Logger } from './log.ts'
import { createObserver } from './observer.ts'
import { openDatabase } from './outbox/database.ts'
import { createDispatcher } from './outbox/dispatcher.ts'
import { createStore } from './outbox/store.ts'
import { createPublisher, readRemembered } from './publisher.ts'
import { selfOpening } from './sink-opener.ts'
import { statusOf, readinessOf, type ForwarderStatus } from './status.ts'
import { agent, version } from './version.ts'

export interface ForwarderOptions {
  readonly config: Config
  readonly log: Logger
  readonly bootId: string | null
  readonly env: NodeJS.ProcessEnv
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** A number in [0, 1). */
  readonly random?: () => number
}

/** What one look at IMDS came to, for `run --once`. */
export interface OnceResult {
  readonly imds: EventsResult
  /** Deliveries that still wait, over all sinks. */
  readonly waiting: number
}

export interface Forwarder {
  /** Polls and delivers from now on. */
  start(): void
  /** Polls once and delivers what is due. Not together with `start`. */
  once(options: { readonly signal: AbortSignal }): Promise<OnceResult>
  /** Graceful: a `stopping` event, then what is due is delivered for at most `shutdownSeconds`. Idempotent. */
  stop(): Promise<void>
  /** At once: whatever is in flight stays in the outbox. Idempotent. */
  close(): Promise<void>
  status(): ForwarderStatus
  readonly adminUrl: string | null
}
