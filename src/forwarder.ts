import { startAdmin } from './admin/server.ts'
import { createMetrics } from './admin/metrics.ts'
import type { Config } from './config/load.ts'
import { buildForwarderEvent } from './events/forwarder-event.ts'
import type { ForwarderKind } from './events/severity.ts'
import { createIdentity } from './identity.ts'
import type { EventsResult } from './imds/client.ts'
import { connectImds } from './imds/connect.ts'
import { incarnationNumber } from './imds/document.ts'
import type { HealthChange } from './imds/health.ts'
import { createPoller } from './imds/poller.ts'
import { intervalWarning } from './imds/schedule.ts'
import { readVm } from './imds/vm.ts'
import type { EventsDocument, Transition } from './lifecycle/model.ts'
import type { Logger } from './log.ts'
import { createObserver } from './observer.ts'
import { openDatabase } from './outbox/database.ts'
import { createDispatcher } from './outbox/dispatcher.ts'
import { createStore } from './outbox/store.ts'
import { createPublisher } from './publisher.ts'
import { readRemembered } from './remembered.ts'
import { selfOpening } from './sink-opener.ts'
import { readinessOf, statusOf, type ForwarderStatus, type StatusParts } from './status.ts'
import { agent, version } from './version.ts'

const pruneEveryMs = 10 * 60_000

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
export interface OnceResult {
  readonly imds: EventsResult
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
  const remembered = readRemembered(store, log)
  let storeProblem: string | null = null

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

  const sinks = config.sinks.map((configured) => {
    const sink = selfOpening(configured, { name: configured.name, log: log.child({ sink: configured.name }), now, agent })
    releases.defer(() => sink.close())
    const dispatcher = createDispatcher({
      store,
      sink,
      name: configured.name,
      concurrency: configured.concurrency,
      timeoutMs: configured.timeoutSeconds * 1000,
      now,
      random,
      log,
      onSettled: (_, outcome, { latencyMs }) =>
        metrics.delivery(configured.name, outcome.status, outcome.status === 'delivered' ? latencyMs / 1000 : null),
    })
    releases.defer(() => dispatcher.close())
    return { configured, sink, dispatcher }
  })
  const sinkStatuses = (): StatusParts['sinks'] => {
    const summaries = new Map(store.summarize().map((summary) => [summary.name, summary]))
    return sinks.map(({ configured, dispatcher }) => {
      const { pending = 0, dead = 0, oldestPendingAt = null } = summaries.get(configured.name) ?? {}
      return { name: configured.name, type: configured.type, health: dispatcher.health(), pending, dead, oldestPendingAt }
    })
  }

  const publisher = createPublisher({
    store,
    sinks: config.sinks,
    prefix: config.events.typePrefix,
    identity: () => identity.current(),
    now,
    wake: () => {
      for (const { dispatcher } of sinks) dispatcher.wake()
    },
  })
  const observer = createObserver({
    publisher,
    remembered: remembered.lifecycle,
    bootId,
    identity: () => identity.current(),
    publish: config.publish,
    scope: config.scope,
    prefix: config.events.typePrefix,
    now,
    onTransition: (transition) => told(transition),
    onAnomaly: (anomaly) => {
      metrics.anomaly(anomaly.kind)
      log.warn({ kind: anomaly.kind, eventId: anomaly.key }, anomaly.detail)
    },
  })

  const metrics = createMetrics(version, {
    lastGoodPollAt: () => observer.state().lastGoodPollAt,
    incarnation: () => incarnationNumber(observer.state().incarnation),
    liveEvents: () => Object.values(observer.state().live).map(({ event }) => ({ type: event.eventType, status: event.eventStatus })),
    sinks: () => sinkStatuses().map((sink) => ({ ...sink, healthy: sink.health.state === 'ok' })),
    now,
  })
  const told = (transition: Transition): void => {
    const status = transition.kind === 'end' ? transition.outcome : transition.status
    const isNew = transition.kind === 'state' && status === 'scheduled' && transition.changes.length === 0 && transition.notBefore !== null
    metrics.transition(transition.event.eventType, status, isNew ? (Date.parse(transition.notBefore ?? '') - transition.at) / 1000 : null)
    const { eventId, eventType, resources } = transition.event
    log.info({ eventId, eventType, status, resources, notBefore: transition.notBefore }, `${eventType} ${status}`)
  }

  /** What the disk refuses now is done by the next poll: nothing in memory has moved. Told once per outage. */
  const stored = <T>(write: () => T): T | undefined => {
    try {
      const result = write()
      if (storeProblem !== null) log.info({}, 'the state file can be written again')
      storeProblem = null
      return result
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      if (problem !== storeProblem) log.error({ err: error }, `the state file cannot be written, the next poll tries again: ${problem}`)
      storeProblem = problem
      return undefined
    }
  }

  let failures = 0
  let lastError: string | null = null
  let lastGoodPollAt = remembered.lifecycle.lastGoodPollAt
  const waitingEvents: { kind: ForwarderKind; at: number; lastGoodPollAt: number | null; failures: number; lastError: string | null }[] = []
  /** An event about the forwarder itself; it waits until this VM is known, because its source depends on that. */
  const tellOfForwarder = (kind: ForwarderKind, at = now()): void => {
    waitingEvents.push({ kind, at, lastGoodPollAt, failures, lastError })
    tellWaiting()
  }
  const tellWaiting = (): void => {
    const known = waitingEvents.length === 0 ? null : identity.current()
    if (known === null) return
    const context = { prefix: config.events.typePrefix, scope: config.scope, identity: known }
    const outbox = Object.fromEntries(store.summarize().map(({ name, pending }) => [name, pending]))
    const publications = waitingEvents.map(({ kind, at, ...event }) => ({
      event: buildForwarderEvent(kind, at, { version, startedAt, state: observer.state(), outbox, ...event }, context),
      affectsThisVm: null,
    }))
    publisher.publish(publications)
    waitingEvents.length = 0
  }

  const onHealth = (change: HealthChange): void => {
    if (change.kind === 'recovered') {
      if (change.wasUnreachable) stored(() => tellOfForwarder('imds-recovered', change.at))
      return
    }
    failures = change.failures
    lastError = change.detail
    if (change.kind === 'unreachable') stored(() => tellOfForwarder('imds-unreachable', change.at))
  }
  const onDocument = (document: EventsDocument, _changed: boolean, at: number): void => {
    lastGoodPollAt = at
    failures = 0
    lastError = null
    stored(() => {
      // In this order: what the forwarder says of itself came before what it sees now.
      tellWaiting()
      observer.observe(document)
    })
  }
  let polledAt: number | null = null
  const poller = createPoller({
    client,
    intervalMs: config.imds.pollIntervalMs,
    unreachableAfterFailures: config.imds.unreachableAfterFailures,
    now,
    random,
    log,
    onDocument,
    onUnchanged: (at) => {
      lastGoodPollAt = at
    },
    onHealth,
    onPoll: (result) => {
      const at = now()
      const good = result.kind !== 'failure'
      metrics.poll(good ? 'ok' : result.reason, good && polledAt !== null ? (at - polledAt) / 1000 : null)
      if (good) polledAt = at
    },
  })
  releases.defer(() => poller.stop())

  const prune = (): void => {
    stored(() => {
      for (let more = true; more;) {
        const pruned = store.prune()
        more = pruned.more
        for (const { sink, id, attempts } of pruned.expired)
          log.warn({ sink, id, attempts }, 'dead letter: it ran out of time (maxAgeSeconds)')
        for (const { sink, state, count } of pruned.removed) {
          metrics.pruned(sink, state, count)
          if (state === 'dead') log.warn({ sink, count }, 'dead letters were removed after 30 days')
        }
      }
    })
  }

  const timers: NodeJS.Timeout[] = []
  releases.defer(() => {
    for (const timer of timers) clearInterval(timer)
  })

  const statusParts = (): StatusParts => ({
    version,
    startedAt,
    now: now(),
    identity: identity.current(),
    endpoint: config.imds.endpoint,
    apiVersion: config.imds.apiVersion,
    imds: poller.health(),
    remembered: observer.state(),
    sinks: sinkStatuses(),
    statePath: config.state.path,
    setAside: database.setAside?.path ?? null,
    storeProblem,
  })

  const drain = (signal: AbortSignal): Promise<unknown> => Promise.all(sinks.map(({ dispatcher }) => dispatcher.drain({ signal })))
  const owned = releases.move()
  let running = false
  let ending: Promise<void> | undefined

  const forwarder: Forwarder = {
    failed: failure.promise,
    status: () => statusOf(statusParts()),
    start() {
      if (running || ending !== undefined) return
      running = true
      const warning = intervalWarning(config.imds.pollIntervalMs)
      if (warning !== undefined) log.warn({}, warning)
      warnOfForgotten(store.summarize(), config, log)
      prune()
      identity.start()
      for (const { sink, dispatcher } of sinks) {
        sink.warm()
        dispatcher.start()
      }
      stored(() => tellOfForwarder('started', startedAt))
      poller.start()
      poller.finished.catch(failure.reject)
      timers.push(setInterval(prune, pruneEveryMs))
      // The grid of the heartbeat is its own: it beats also while IMDS is silent, and then says so.
      const { intervalSeconds } = config.heartbeat
      if (intervalSeconds > 0) timers.push(setInterval(() => stored(() => tellOfForwarder('heartbeat')), intervalSeconds * 1000))
    },
    async once({ signal }) {
      prune()
      identity.start()
      const imds = await pollUntilTaken(signal)
      await drain(signal)
      return { imds, waiting: store.summarize().reduce((sum, { pending }) => sum + pending, 0) }
    },
    async stop() {
      if (ending === undefined && running) {
        await poller.stop()
        stored(() => {
          observer.writeMark()
          tellOfForwarder('stopping')
        })
        await drain(AbortSignal.timeout(config.shutdownSeconds * 1000))
      }
      await forwarder.close()
    },
    close: () => (ending ??= owned.disposeAsync()),
  }

  /** The first document may come before this VM is known; it is shown again until then. */
  const pollUntilTaken = async (signal: AbortSignal): Promise<EventsResult> => {
    for (;;) {
      const result = await poller.pollOnce({ signal })
      if (result.kind !== 'document' || identity.current() !== null) {
        if (result.kind === 'document') onDocument(result.document, true, now())
        return result
      }
      await new Promise((resolve) => setTimeout(resolve, config.imds.pollIntervalMs))
    }
  }

  if (config.admin.listen !== false) {
    try {
      const admin = await startAdmin(config.admin.listen, {
        metrics: () => metrics.registry.metrics(),
        readiness: () => readinessOf(statusParts()),
        status: () => forwarder.status(),
      })
      owned.defer(() => admin.close())
      log.info({ url: admin.url }, 'the admin endpoint listens')
    } catch (error) {
      await forwarder.close()
      throw error
    }
  }
  return forwarder
}

/** Deliveries of sinks that the configuration no longer has run out of time like all others; until then they are worth a word. */
function warnOfForgotten(summaries: readonly { name: string; pending: number }[], config: Config, log: Logger): void {
  for (const { name, pending } of summaries) {
    if (pending > 0 && !config.sinks.some((sink) => sink.name === name)) {
      log.warn(
        { sink: name, pending },
        'events wait for a sink that the configuration does not have: add it again, or drop them with: foreshock outbox drop --sink',
      )
    }
  }
}
