import type { SinkLog } from '../../sinks/contract.ts'
import type { EventsDocument } from '../lifecycle/model.ts'
import type { EventsResult, ImdsClient } from './client.ts'
import { trackHealth, type HealthChange, type ImdsHealth } from './health.ts'
import { pause } from './pause.ts'
import { delayAfterFailureMs, nextDue } from './schedule.ts'
import { firstTimeoutMs, usualTimeoutMs } from './timeouts.ts'

export interface PollerOptions {
  readonly client: Pick<ImdsClient, 'getEvents'>
  readonly intervalMs: number
  /** Failures in a row before `unreachable` is told (10). */
  readonly unreachableAfterFailures?: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** A number in [0, 1). */
  readonly random: () => number
  readonly log: Pick<SinkLog, 'info' | 'warn'>
  /**
   * A document came. `changed`: it is another one than this handler last took without throwing. The next poll waits for it.
   * What it throws ends the poller: see `finished`.
   */
  readonly onDocument: (document: EventsDocument, changed: boolean, at: number) => void | Promise<void>
  readonly onHealth?: (change: HealthChange) => void
  /** After each poll, for metrics. */
  readonly onPoll?: (result: EventsResult, tookMs: number) => void
}

export interface Poller {
  /** Polls at once and then at the interval. Idempotent; a poller that was stopped stays stopped. */
  start(): void
  /** Ends the request in flight and resolves when nothing runs any more. Idempotent. */
  stop(): Promise<void>
  /**
   * Polls now, started or not, and hands the result to the handlers as always. Joins the request that is in flight, if there is one.
   * Rejects with the reason of `signal`, which ends only this caller's wait, and when the poller is stopped.
   */
  pollOnce(options?: { readonly signal?: AbortSignal }): Promise<EventsResult>
  health(): ImdsHealth
  /** Resolves when the poller was stopped, rejects with what a handler threw. */
  readonly finished: Promise<void>
}

/**
 * Looks at IMDS at a fixed cadence, never with two requests at once.
 *
 * A poll that succeeds is followed by the next due time of the grid; one that fails by a backoff, after which a success starts a new grid.
 * Only time bounds how long a request holds up polling: other requests of the same client, such as an approval, go beside it.
 */
export function createPoller(options: PollerOptions): Poller {
  const { client, intervalMs, now, random, log } = options
  const tracker = trackHealth(now(), options.unreachableAfterFailures ?? 10)
  const lifetime = new AbortController()
  const { promise: finished, resolve, reject } = Promise.withResolvers<void>()
  let started = false
  let answered = false
  let failures = 0
  let taken: EventsDocument | undefined
  let inFlight: Promise<EventsResult> | undefined

  const tell = (changes: readonly HealthChange[]): void => {
    for (const change of changes) {
      report(log, change)
      options.onHealth?.(change)
    }
  }

  const request = async (): Promise<EventsResult> => {
    const startedAt = now()
    const timeoutMs = answered ? usualTimeoutMs : firstTimeoutMs
    const result = await client.getEvents({ signal: lifetime.signal, timeoutMs })
    const at = now()
    options.onPoll?.(result, at - startedAt)
    if (result.kind === 'failure') {
      failures += 1
      tell(tracker.failed(result, at))
      return result
    }
    answered = true
    failures = 0
    tell(tracker.succeeded(at))
    // The client's own `changed` counts every reader; equal bytes give the same object, so identity tells what this handler knows.
    await options.onDocument(result.document, result.document !== taken, at)
    taken = result.document
    return result
  }

  const poll = (): Promise<EventsResult> => {
    lifetime.signal.throwIfAborted()
    inFlight ??= request().finally(() => {
      inFlight = undefined
    })
    return inFlight
  }

  const run = async (): Promise<void> => {
    const { signal } = lifetime
    let due = now()
    while (!signal.aborted) {
      const startedAt = now()
      const result = await poll()
      const at = now()
      due =
        result.kind === 'failure'
          ? at + delayAfterFailureMs(failures, intervalMs, result.retryAfterMs, random())
          : nextDue(due, startedAt, at, intervalMs)
      await pause(due - at, { signal, now })
    }
  }

  return {
    start() {
      if (started || lifetime.signal.aborted) return
      started = true
      run().then(resolve, (error: unknown) => {
        if (lifetime.signal.aborted && error === lifetime.signal.reason) resolve()
        else reject(error)
      })
    },
    async stop() {
      lifetime.abort()
      if (!started) resolve()
      await Promise.allSettled([finished, inFlight])
    },
    async pollOnce({ signal } = {}) {
      signal?.throwIfAborted()
      return signal === undefined ? poll() : await unlessAborted(poll(), signal)
    },
    health: () => tracker.at(now()),
    finished,
  }
}

/** Silent while all is well: one line when trouble starts or has another reason, one when it is over. */
function report(log: PollerOptions['log'], change: HealthChange): void {
  switch (change.kind) {
    case 'failing':
      log.warn({ reason: change.lastReason }, `IMDS gives no document: ${change.detail}; polling goes on`)
      return
    case 'unreachable':
      log.warn({ reason: change.lastReason, failures: change.failures }, `IMDS is unreachable after ${change.failures} failures in a row`)
      return
    case 'recovered':
      log.info({ failures: change.failures, durationMs: change.durationMs }, `IMDS answers again after ${seconds(change.durationMs)}`)
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
