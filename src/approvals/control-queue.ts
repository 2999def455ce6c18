import type { ServiceBusReceivedMessage } from '@azure/service-bus'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { lineOf } from '../../sinks/azure/failures.ts'
import type { SinkLog } from '../../sinks/contract.ts'
import { ForeshockError } from '../../sinks/error.ts'
import type { ControlConfig } from '../config/approvals.ts'
import { pause } from '../imds/pause.ts'
import type { Ask, Decided } from './approver.ts'
import { keepLock } from './lock-keeper.ts'
import type { Envelope } from './message.ts'
import { openQueueLink, type QueueLink } from './queue-link.ts'
import { deliveryOf, envelopeOf, expiryOf } from './queue-message.ts'
import { createReplies, type Replies } from './replies.ts'
import type { ApprovalRequest } from './request.ts'
import type { ServiceBus } from './service-bus.ts'
import { isLast, pauseMs, settlementOf } from './settlement.ts'

const longestBackoffMs = 30_000
const firstBackoffMs = 500
const idleMs = 200
/** How long a message is kept that cannot be judged because IMDS does not answer. */
const graceMs = 10_000
const skewMs = 60_000

export interface ControlQueueOptions {
  readonly control: ControlConfig
  readonly open: () => Promise<ServiceBus>
  /** Undefined while it is not known: this VM's name comes from instance metadata. null: no sessions. */
  readonly sessionId: () => string | null | undefined
  /** Whether IMDS can be read, so that a message can be judged at all. */
  readonly ready: () => boolean
  readonly read: (envelope: Envelope) => Promise<ApprovalRequest>
  readonly decide: (ask: Ask) => Promise<Decided>
  readonly now: () => number
  /** A number in [0, 1). */
  readonly random: () => number
  readonly log: SinkLog
}

/** How the control queue is, for status and metrics. */
export type ControlState =
  | { readonly state: 'starting' }
  | { readonly state: 'receiving'; readonly since: number }
  /** IMDS cannot be read. */
  | { readonly state: 'paused'; readonly since: number }
  | { readonly state: 'failing'; readonly since: number; readonly detail: string }

export interface ControlQueue {
  /** Idempotent. */
  start(): void
  /** Receives nothing more and gives back what waits; resolves when what is being relayed is settled. Idempotent. */
  stop(): Promise<void>
  state(): ControlState
}

/**
 * Receives approvals with peek-lock, one link at a time, and opens a new one whenever it breaks, for ever. A message goes through: received (its
 * lock is renewed from now on) -> judged and relayed -> replied -> settled. Whatever ends this process in between leaves the lock to run out, and
 * the message comes again; what was decided by then stands in the store.
 */
export function createControlQueue(options: ControlQueueOptions): ControlQueue {
  const { control, now, random, log, ready } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const atOnce = control.session === 'none' ? control.concurrency : 1
  let state: ControlState = { state: 'starting' }
  let running: Promise<void> | undefined

  const enter = (next: 'receiving' | 'paused'): void => {
    if (state.state === next) return
    if (state.state === 'failing') log.info({ queue: nameOf(control) }, 'approvals are received again')
    state = { state: next, since: now() }
  }
  const fail = (error: unknown): void => {
    const detail = lineOf(error)
    if (state.state !== 'failing' || state.detail !== detail) {
      log.warn({ queue: nameOf(control), problem: detail }, `approvals cannot be received, which is tried again for ever: ${detail}`)
    }
    state = { state: 'failing', since: state.state === 'failing' ? state.since : now(), detail }
  }

  const run = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted;) {
      try {
        await connect(() => {
          failures = 0
        })
      } catch (error) {
        if (signal.aborted) return
        fail(error)
        failures += 1
        const backoff = Math.min(firstBackoffMs * 2 ** (failures - 1), longestBackoffMs)
        await pause(backoff * (1 - random() / 4), { signal, now })
      }
    }
  }

  /** One client, until something breaks or the end. While IMDS cannot be read there is no link, so that another may have the session. */
  const connect = async (alive: () => void): Promise<void> => {
    let bus: ServiceBus | undefined
    try {
      while (!signal.aborted) {
        const sessionId = options.sessionId()
        if (!ready() || sessionId === undefined) {
          if (state.state === 'receiving') enter('paused')
          await pause(idleMs, { signal, now })
          continue
        }
        bus ??= await options.open()
        bus.broken.throwIfAborted()
        await serve(bus, sessionId, alive)
      }
    } finally {
      await bus?.close()
    }
  }

  /** One link, until it breaks, IMDS falls silent, or the end. */
  const serve = async (bus: ServiceBus, sessionId: string | null, alive: () => void): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    const link = await openQueueLink(bus, control.subscription, sessionId, signal)
    stack.defer(() => link.close())
    alive()
    enter('receiving')
    const replies = createReplies(bus.client, link.entity, log)
    stack.defer(() => replies.close())
    if (link.session !== null) {
      const lock = keepLock({
        ...link.session,
        now,
        onLost: (error) => log.warn({ problem: lineOf(error) }, 'the session lock is lost'),
      })
      stack.defer(() => lock.stop())
    }
    const inFlight = new Set<Promise<void>>()
    // What was received is brought to its end on the link that it came by, also when that link gives no more.
    stack.defer(async () => void (await Promise.all(inFlight)))

    const silent = new AbortController()
    const watching = setInterval(() => {
      if (!ready()) silent.abort()
    }, idleMs)
    stack.defer(() => clearInterval(watching))
    const handle = (message: ServiceBusReceivedMessage): Promise<void> => {
      alive()
      const served = settle(message, link, replies).finally(() => inFlight.delete(served))
      inFlight.add(served)
      return served
    }
    await link.receive(handle, atOnce, AbortSignal.any([signal, silent.signal]))
  }

  /** Never rejects: what fails here is tried again when the broker delivers the message again. */
  const settle = async (message: ServiceBusReceivedMessage, link: QueueLink, replies: Replies): Promise<void> => {
    const about = { messageId: message.messageId, sequenceNumber: message.sequenceNumber?.toString(), deliveryCount: message.deliveryCount }
    const lock = keepLock({
      lockedUntil: () => link.lockedUntil(message),
      renew: () => link.renew(message),
      now,
      onLost: (error) => log.warn({ ...about, problem: lineOf(error) }, 'the lock of a message is lost: it will be delivered again'),
    })
    const deliveryCount = message.deliveryCount ?? 0
    const rest = pauseMs(deliveryCount, control.pauseSeconds * 1000)
    try {
      const request = await options.read(envelopeOf(message))
      const expiresAt = earliest(expiryOf(message), endOf(request))
      let last = false
      const decided = await untilDecided(() => {
        last = isLast({ deliveryCount, expiresAt }, control.maxDeliveryCount, now(), rest)
        return options.decide({ request, delivery: deliveryOf(link.entity, message), last, signal })
      })
      const { settlement, code } = settlementOf(decided.codes, last)
      await replies.send(message, settlement === 'abandon' ? [] : decided.events)
      if (settlement === 'abandon') await pause(rest, { signal, now })
      // A settlement that gets no answer must not keep the message from being delivered again.
      lock.stop()
      try {
        if (settlement === 'complete') await link.complete(message)
        else if (settlement === 'abandon') await link.abandon(message)
        else await link.deadLetter(message, code, describe(decided.events, code, decided.detail))
      } catch (error) {
        log.info(
          { ...about, code, problem: lineOf(error) },
          'a message could not be settled: what was decided stands, and is settled when it is delivered again',
        )
      }
    } catch (error) {
      await giveBack(error, message, link, rest, about)
    } finally {
      lock.stop()
    }
  }

  /** IMDS fails now and then: what was received is kept for a while rather than given back at once. */
  const untilDecided = async (decide: () => Promise<Decided>): Promise<Extract<Decided, { kind: 'verdict' }>> => {
    for (const since = now(); ;) {
      const decided = await decide()
      if (decided.kind === 'verdict') return decided
      if (now() - since > graceMs) throw new ForeshockError('unreachable', decided.detail)
      await pause(idleMs, { signal, now })
      signal.throwIfAborted()
    }
  }

  const giveBack = async (
    error: unknown,
    message: ServiceBusReceivedMessage,
    link: QueueLink,
    rest: number,
    about: object,
  ): Promise<void> => {
    if (!signal.aborted) {
      log.warn(
        { ...about, problem: lineOf(error), err: error },
        'a message could not be brought to its end: it is given back and delivered again',
      )
      await pause(rest, { signal, now })
    }
    try {
      await link.abandon(message)
    } catch (lost) {
      log.debug({ ...about, problem: lineOf(lost) }, 'nor could it be given back: its lock runs out')
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      await running
    },
    state: () => state,
  }
}

const nameOf = ({ queue, topic, subscription }: ControlConfig): string => queue ?? `${topic}/${subscription}`

const earliest = (...times: (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** When the request itself ends; a signed one is taken for a little longer, since clocks differ. */
const endOf = ({ validity: { expiresAt }, signed }: ApprovalRequest): number | null =>
  expiresAt === null ? null : expiresAt + (signed === null ? 0 : skewMs)

/** At a second delivery, the detail is that of the first. */
function describe(events: readonly CloudEvent[], code: string, detail: string): string {
  const told = events.find(({ data }) => data['code'] === code)?.data['detail']
  return (typeof told === 'string' ? told : detail).slice(0, 4000)
}
