import { setTimeout as sleep } from 'node:timers/promises'
import { startAdmin } from './admin/server.ts'
import { createMetrics } from './admin/metrics.ts'
import type { Approvals, ApprovalsOptions } from './approvals/approvals.ts'
import type { Config } from './config/load.ts'
import { createIdentity } from './identity.ts'
import type { EventsResult } from './imds/client.ts'
import { connectImds } from './imds/connect.ts'
import { createPoller } from './imds/poller.ts'
import { intervalWarning } from './imds/schedule.ts'
import { readVm } from './imds/vm.ts'
import type { EventsDocument } from './lifecycle/model.ts'
import type { Logger } from './log.ts'
import { createObserver } from './observer.ts'
import { openDatabase } from './outbox/database.ts'
import { createJanitor } from './outbox/janitor.ts'
import { createStore, type Store } from './outbox/store.ts'
import { createPublisher } from './publisher.ts'
import { readRemembered } from './remembered.ts'
import { createSelfReport } from './self-report.ts'
import { createSinkGroup } from './sink-group.ts'
import { readinessOf, statusOf, type ForwarderStatus, type StatusParts } from './status.ts'
import { createWriteGuard } from './write-guard.ts'
import { agent, version } from './version.ts'

export interface ForwarderOptions {
  readonly config: Config
  readonly log: Logger
  /** Changes with every boot of the machine; null where the platform has none. */
  readonly bootId: string | null
  readonly env: NodeJS.ProcessEnv
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** A number in [0, 1). */
  readonly random?: () => number
}

/** What one look at IMDS came to, for `run --once`. */
interface OnceResult {
  readonly imds: EventsResult
  /** False where the state file could not be written. */
  readonly stored: boolean
  /** Deliveries that still wait, over all sinks. */
  readonly waiting: number
}

export interface Forwarder {
  /** Polls and delivers from now on. Idempotent. */
  start(): void
  /** Polls once and delivers what is due. Instead of `start`. */
  once(options: { readonly signal: AbortSignal }): Promise<OnceResult>
  /** Graceful: a `stopping` event, then what is due is delivered for at most `shutdownSeconds`. Idempotent. */
  stop(): Promise<void>
  /** At once: whatever is in flight stays in the outbox. Idempotent. */
  close(): Promise<void>
  status(): ForwarderStatus
  /** Rejects when the forwarder cannot go on; never resolves by itself. */
  readonly failed: Promise<never>
}

/**
 * The composition root: wires endpoint, poller, observer, outbox and sinks, and owns their start and stop. Whatever is acquired pushes its release
 * on one stack, unwound in reverse. Throws `state_locked`, `state_unusable`, or `unreachable` where the admin address is taken.
 */
export async function createForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { config, log, bootId, env, now = Date.now, random = Math.random } = options
  const startedAt = now()
  const failure = Promise.withResolvers<never>()
  // A rejection that nobody waits for yet is no crash.
  failure.promise.catch(() => {})
  await using releases = new AsyncDisposableStack()

  const database = openDatabase(config.state.path, { now, log, onDamage: failure.reject })
  releases.defer(() => database.close())
  const store = createStore(database, { now })
  const remembered = readRemembered(store, config.events.tags, log)
  const guard = createWriteGuard(log)
  const prefix = config.events.typePrefix

  const client = connectImds({
    ...config.imds,
    agent,
    env,
    onDiscovered: (endpoint, from) => log.info({ endpoint, from }, 'IMDS was discovered'),
  })
  releases.defer(() => client.close())
  const identity = createIdentity({
    read: (signal) => readVm(client, config.events.tags, signal),
    configured: config.identity,
    remembered: remembered.identity,
    now,
    log,
  })
  releases.defer(() => identity.stop())

  const sinks = createSinkGroup({
    sinks: config.sinks,
    store,
    reporter: () => identity.best(),
    env,
    now,
    random,
    log,
    onDelivery: (sink, outcome, latencySeconds) => metrics.delivery(sink, outcome, latencySeconds),
  })
  releases.defer(() => sinks.close())

  const publisher = createPublisher({
    store,
    sinks: config.sinks,
    prefix,
    identity: () => identity.read(),
    now,
    wake: () => sinks.wake(),
  })
  const observer = createObserver({
    publisher,
    remembered: remembered.lifecycle,
    bootId,
    identity: () => identity.current(),
    decideIdentity: () => identity.decide(),
    publish: config.publish,
    scope: config.scope,
    prefix,
    now,
    onTransition: (transition) => {
      metrics.transition(transition)
      const { eventId, eventType, resources } = transition.event
      const status = transition.kind === 'end' ? transition.outcome : transition.status
      log.info({ eventId, eventType, status, resources, notBefore: transition.notBefore }, `${eventType} ${status}`)
    },
    onAnomaly: (anomaly) => {
      metrics.anomaly(anomaly.kind)
      log.warn({ kind: anomaly.kind, eventId: anomaly.key }, anomaly.detail)
    },
  })
  const selfReport = createSelfReport({
    publisher,
    store,
    identity: () => (poller.health().state === 'unreachable' ? identity.best() : identity.current()),
    remembered: () => observer.state(),
    imds: () => poller.health(),
    prefix,
    scope: config.scope,
    version,
    startedAt,
    now,
  })
  const metrics = createMetrics(version, {
    remembered: () => observer.state(),
    sinks: () => sinks.statuses(),
    now,
  })

  /** False where the store failed: the next poll shows the document again. */
  const onDocument = (document: EventsDocument): boolean =>
    guard.attempt(() => {
      // In this order: what the forwarder says of itself came before what it sees now.
      identity.decide()
      selfReport.catchUp()
      observer.observe(document)
      approvals?.onDocument()
    })
  const poller = createPoller({
    client,
    intervalMs: config.imds.pollIntervalMs,
    unreachableAfterFailures: config.imds.unreachableAfterFailures,
    now,
    random,
    log,
    onDocument: (document) => void onDocument(document),
    onHealth: (change) => guard.attempt(() => selfReport.turn(change)),
    onPoll: (result) => metrics.poll(result.kind === 'failure' ? result.reason : 'ok', now()),
  })
  releases.defer(() => poller.stop())

  const approvals = await openApprovals({
    config,
    client,
    store,
    observer,
    identity: () => identity.current(),
    imds: () => poller.health(),
    env,
    now,
    random,
    log,
    onOutcome: (outcome, code) => metrics.approval(outcome, code),
  })
  releases.defer(() => approvals?.stop())

  const janitor = createJanitor({
    store,
    log,
    onPruned: (sink, state, count) => (state === 'pending' ? metrics.delivery(sink, 'expired', null) : metrics.pruned(sink, state, count)),
  })
  releases.defer(() => janitor.close())

  const statusParts = (): StatusParts => ({
    version,
    startedAt,
    now: now(),
    identity: identity.current(),
    endpoint: config.imds.endpoint,
    apiVersion: config.imds.apiVersion,
    imds: poller.health(),
    remembered: observer.state(),
    sinks: sinks.statuses(),
    statePath: config.state.path,
    setAside: database.setAside?.path ?? null,
    storeProblem: guard.problem(),
    approvals: approvals?.status() ?? null,
  })
  if (config.admin.listen !== false) {
    const admin = await startAdmin(
      config.admin.listen,
      {
        metrics: () => metrics.registry.metrics(),
        readiness: () => readinessOf(statusParts()),
        status: () => statusOf(statusParts()),
      },
      log,
    )
    releases.defer(() => admin.close())
    log.info({ url: admin.url }, 'the admin endpoint listens')
  }

  const owned = releases.move()
  let running = false
  let beat: NodeJS.Timeout | undefined
  let stopping: Promise<void> | undefined
  let ending: Promise<void> | undefined
  const close = (): Promise<void> => {
    clearInterval(beat)
    return (ending ??= owned.disposeAsync())
  }
  const stop = async (): Promise<void> => {
    if (ending === undefined && running) {
      clearInterval(beat)
      // What is being relayed tells its outcome, and that is flushed like everything else.
      await approvals?.stop()
      await poller.stop()
      guard.attempt(() => {
        observer.writeMark()
        selfReport.tell('stopping')
      })
      await sinks.drain(AbortSignal.timeout(config.shutdownSeconds * 1000))
    }
    await close()
  }
  const heartbeat = (): void => {
    try {
      guard.attempt(() => selfReport.tell('heartbeat'))
    } catch (error) {
      failure.reject(error)
    }
  }

  return {
    failed: failure.promise,
    status: () => statusOf(statusParts()),
    start() {
      if (running || ending !== undefined) return
      running = true
      const warning = intervalWarning(config.imds.pollIntervalMs)
      if (warning !== undefined) log.warn({}, warning)
      janitor.start()
      identity.start()
      sinks.start()
      guard.attempt(() => selfReport.tell('started', startedAt))
      poller.start()
      poller.finished.catch(failure.reject)
      approvals?.start()
      // It beats also while IMDS is silent, and then says so.
      const { intervalSeconds } = config.heartbeat
      if (intervalSeconds > 0) beat = setInterval(heartbeat, intervalSeconds * 1000)
    },
    async once({ signal }) {
      identity.start()
      const imds = await poller.pollOnce({ signal })
      if (imds.kind !== 'document') return { imds, stored: true, waiting: waitingDeliveries(store) }
      // The document may come before this VM is known; it is shown again then.
      while (identity.decide() === null) await sleep(50, undefined, { signal })
      const stored = onDocument(imds.document)
      await sinks.drain(signal)
      return { imds, stored, waiting: waitingDeliveries(store) }
    },
    stop: () => (stopping ??= stop()),
    close,
  }
}

/** Nothing of it is loaded where the configuration wants none of it. */
async function openApprovals(options: ApprovalsOptions): Promise<Approvals | undefined> {
  const { approvals, control } = options.config
  if (approvals === undefined && control === undefined) return undefined
  const { createApprovals } = await import('./approvals/approvals.ts')
  return await createApprovals(options)
}

const waitingDeliveries = (store: Store): number => store.summarize().reduce((sum, { pending }) => sum + pending, 0)
