import rhea, { type Connection, type Delivery, type EventContext, type link as Link, type Receiver, type Sender, type Session } from 'rhea'
import { dotnetTicks, grantedFilter, readWishes, type ReceiverWishes } from './attach-filter.ts'
import { audiencePath, parseAddress, type Address } from './address.ts'
import { answerPutToken, entityOf } from './cbs.ts'
import { Claims } from './claims.ts'
import type { BrokerContext } from './context.ts'
import { answerEventHubs } from './event-hubs-management.ts'
import { parseSelector } from './event-log.ts'
import { HubReader } from './hub-reader.ts'
import { takeSends } from './incoming.ts'
import { recordOf } from './message.ts'
import type { Peer } from './peer.ts'
import { problems } from './problems.ts'
import { QueueReceiver, type Disposition } from './queue-receiver.ts'
import type { QueueNode } from './queue-node.ts'
import { answerRequest, grantRequests, type RequestHandler } from './request-response.ts'
import {
  acceptConnection,
  announcedFrameSize,
  answerEveryDrain,
  holdAttach,
  setAttachField,
  tapTransfers,
  type AmqpProblem,
  type TransferTap,
} from './rhea-internals.ts'
import { answerServiceBus } from './service-bus-management.ts'
import type { Right } from './token.ts'

/** Azure's own limits: 64 KiB frames, and a peer that says nothing for four minutes is gone. */
const maxFrameBytes = 65_536
const idleTimeoutMs = 120_000

/** What lives behind an open link. */
interface Served {
  readonly link: Link
  /** Lower-cased address, which a claim must cover; null for `$cbs`, which needs none. */
  readonly path: string | null
  readonly right: Right | null
  readonly entity: string
  close(): void
  /** For links that take messages. */
  readonly onDelivery?: (delivery: Delivery, raw: Buffer) => void
  /** For links that give messages. */
  readonly onFlow?: (draining: boolean) => void
  readonly onDisposition?: (disposition: Disposition, delivery: Delivery) => void
}

const nothing = (): void => {}

/** Empty where the peer gave no terminus, which the typings of rhea do not foresee. */
function addressOf(terminus: unknown): string {
  const { address } = recordOf(terminus)
  return typeof address === 'string' ? address : ''
}

/** One peer: its AMQP connection, the claims that it put, and the links that it attached. */
export class BrokerConnection {
  readonly #context: BrokerContext
  readonly #peer: Peer
  readonly #id: string
  readonly #claims: Claims
  readonly #connection: Connection
  readonly #served = new Map<Link, Served>()
  readonly #taps = new WeakMap<Session, TransferTap>()
  readonly #transferLimit: number
  #closed = false

  constructor(peer: Peer, id: string, context: BrokerContext) {
    this.#peer = peer
    this.#id = id
    this.#context = context
    this.#claims = new Claims(context.now, () => this.#dropUnclaimed())
    // One message and its envelope; what is longer is refused by the entity once it is complete.
    this.#transferLimit = context.directory.maxMessageBytes + maxFrameBytes
    const wire = {
      on: (event: 'data' | 'end' | 'error', handler: (value?: unknown) => void): void => {
        peer.on(event, event === 'data' ? this.#guardFrames(handler) : handler)
      },
      write: (bytes: Buffer): void => peer.write(bytes),
      end: (): void => peer.end(),
      destroy: (): void => peer.destroy(),
      removeAllListeners: (event: string): void => peer.removeAllListeners(event),
    }
    const container = rhea.create_container({ id: 'foreshock-broker' })
    container.sasl_server_mechanisms.enable_anonymous()
    // `accept` starts to read, but the first byte comes in a later turn, when the handlers are in place.
    const options = {
      container_id: 'foreshock-broker',
      max_frame_size: maxFrameBytes,
      idle_time_out: idleTimeoutMs,
      receiver_options: { autoaccept: false, credit_window: 0 },
      sender_options: { treat_modified_as_released: false },
    }
    this.#connection = acceptConnection(container, wire, options)
    this.#listen()
  }

  get links(): number {
    return this.#served.size
  }

  /** Detaches the links of an entity (null: of all) and tells why. Gives their number. */
  detachLinks(entity: string | null, problem: AmqpProblem): number {
    let detached = 0
    for (const served of this.#served.values()) {
      if (served.path === null) continue
      if (entity !== null && served.entity.toLowerCase() !== entity.toLowerCase()) continue
      this.#detach(served.link, problem)
      detached += 1
    }
    return detached
  }

  destroy(): void {
    this.#peer.destroy()
  }

  /** To be called when the socket is gone. */
  closed(): void {
    this.#closed = true
    this.#claims.close()
    for (const served of this.#served.values()) served.close()
    this.#served.clear()
  }

  #listen(): void {
    const on = (event: string, handler: (context: EventContext) => void): void => {
      this.#connection.on(event, (context: EventContext) => {
        this.#guard(event, () => handler(context))
      })
    }
    on('session_open', ({ session }) => {
      if (session !== undefined) this.#taps.set(session, tapTransfers(session, this.#transferLimit))
    })
    on('receiver_open', ({ receiver }) => {
      if (receiver !== undefined) this.#attachReceiver(receiver)
    })
    on('sender_open', ({ sender }) => {
      if (sender !== undefined) this.#attachSender(sender)
    })
    on('message', ({ receiver, delivery, message }) => {
      const raw: unknown = message
      if (receiver !== undefined && delivery !== undefined && Buffer.isBuffer(raw)) this.#served.get(receiver)?.onDelivery?.(delivery, raw)
    })
    for (const event of ['sender_flow', 'sendable']) {
      on(event, ({ sender }) => {
        if (sender !== undefined) this.#served.get(sender)?.onFlow?.(false)
      })
    }
    on('sender_draining', ({ sender }) => {
      if (sender !== undefined) this.#served.get(sender)?.onFlow?.(true)
    })
    for (const disposition of ['accepted', 'rejected', 'released', 'modified'] as const) {
      on(disposition, ({ sender, delivery }) => {
        if (sender !== undefined && delivery !== undefined) this.#served.get(sender)?.onDisposition?.(disposition, delivery)
      })
    }
    for (const event of ['receiver_close', 'sender_close', 'receiver_error', 'sender_error']) {
      on(event, (context) => {
        const link = context.sender ?? context.receiver
        if (link !== undefined) this.#forget(link)
      })
    }
    on('session_close', ({ session }) => {
      for (const { link } of this.#served.values()) if (link.session === session) this.#forget(link)
    })
    // Without a listener rhea throws, or writes to the console.
    for (const event of ['connection_open', 'connection_close', 'connection_error', 'session_error', 'disconnected', 'settled']) {
      on(event, nothing)
    }
    for (const event of ['error', 'protocol_error']) {
      this.#connection.on(event, (error: unknown) => {
        this.#context.remember('a peer broke the protocol', error)
        this.#peer.destroy()
      })
    }
  }

  /** A fault in here must cost one connection, not the broker. */
  #guard(what: string, action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#context.remember(`handling ${what}`, error)
      this.#peer.destroy()
    }
  }

  /** A peer that announces a giant frame is cut off before its bytes are collected. */
  #guardFrames(handler: (value?: unknown) => void): (value?: unknown) => void {
    return (bytes) => {
      handler(bytes)
      if (announcedFrameSize(this.#connection) <= maxFrameBytes) return
      this.#context.remember('a peer broke the protocol', new RangeError('a frame is longer than the limit'))
      this.#peer.destroy()
    }
  }

  #attachReceiver(link: Receiver): void {
    const text = addressOf(link.target)
    const address = parseAddress(text)
    if (address.kind === 'cbs') {
      this.#serveRequests(link, null, (request) => answerPutToken(request, this.#claims, this.#context))
      return
    }
    if (address.kind === 'management') {
      this.#attachManagement(link, address, text)
      return
    }
    const target = this.#context.directory.sendTarget(address)
    const problem = this.#refusal(text, target?.entity ?? null, 'Send')
    if (target === null || problem !== null) {
      this.#refuse(link, problem ?? problems.notFound(text))
      return
    }
    link.set_target({ address: text })
    link.set_source({ address: addressOf(link.source) })
    setAttachField(link, 'max_message_size', target.maxMessageBytes)
    const onDelivery = takeSends({
      link,
      target,
      context: this.#context,
      takeOversized: (deliveryId) => this.#taps.get(link.session)?.takeOversized(deliveryId) ?? false,
      dropConnection: () => this.#peer.destroy(),
      detach: (reason) => this.#detach(link, reason),
    })
    this.#served.set(link, { link, path: audiencePath(text), right: 'Send', entity: target.entity, close: nothing, onDelivery })
  }

  #attachManagement(link: Receiver, address: Address & { kind: 'management' }, text: string): void {
    const { directory } = this.#context
    if (address.entity === null) {
      // Which hub it is about stands in each request.
      const allowed = (entity: string): boolean => !this.#context.requireToken || this.#claims.touch(entity.toLowerCase())
      this.#serveRequests(link, '$management', (request) => answerEventHubs(request, directory, allowed))
      return
    }
    const { entity } = address
    const of = parseAddress(entity)
    const node = of.kind === 'entity' ? (directory.queue(of.path, of.deadLetters) ?? directory.topic(of.path)) : null
    if (node === null && directory.hub(entity) !== null) {
      const allowed = (hub: string): boolean => !this.#context.requireToken || this.#claims.touch(hub.toLowerCase())
      this.#serveRequests(link, text, (request) => answerEventHubs(request, directory, allowed))
      return
    }
    const problem = this.#refusal(text, node?.entity ?? null, null)
    if (node === null || problem !== null) {
      this.#refuse(link, problem ?? problems.notFound(entity))
      return
    }
    const ownerOf = (linkName: string): string => this.#owner(linkName)
    this.#serveRequests(link, text, (request) => answerServiceBus(request, { node, context: this.#context, ownerOf }))
  }

  #serveRequests(link: Receiver, path: string | null, handler: RequestHandler): void {
    link.set_target({ address: addressOf(link.target) })
    link.set_source({ address: addressOf(link.source) })
    grantRequests(link)
    const onDelivery = (delivery: Delivery, raw: Buffer): void => {
      delivery.accept()
      link.add_credit(1)
      answerRequest(raw, handler, (replyTo) => this.#replyLink(replyTo)).catch((error: unknown) => {
        this.#context.remember('answering a request', error)
        this.#peer.destroy()
      })
    }
    this.#served.set(link, {
      link,
      path: path?.toLowerCase() ?? null,
      right: null,
      entity: path === null ? '' : entityOf(path),
      close: nothing,
      onDelivery,
    })
  }

  /** `$cbs` replies go by the name of the link, management replies by its target address. */
  #replyLink(replyTo: string): Sender | undefined {
    return this.#connection.find_sender((sender: Sender) => sender.name === replyTo || sender.target?.address === replyTo)
  }

  #attachSender(link: Sender): void {
    const text = addressOf(link.source)
    const address = parseAddress(text)
    answerEveryDrain(link)
    if (address.kind === 'cbs' || address.kind === 'management') {
      link.set_source({ address: text })
      link.set_target({ address: addressOf(link.target) })
      const path = address.kind === 'cbs' ? null : text.toLowerCase()
      this.#served.set(link, { link, path, right: null, entity: path === null ? '' : entityOf(path), close: nothing })
      return
    }
    const wishes = readWishes(link)
    if (address.kind === 'consumer') this.#attachConsumer(link, address, text, wishes)
    else this.#attachQueueReceiver(link, address, text, wishes)
  }

  #attachConsumer(link: Sender, address: Address & { kind: 'consumer' }, text: string, wishes: ReceiverWishes): void {
    const hub = this.#context.directory.hub(address.hub)
    const number = hub?.partitionNumber(address.partition) ?? null
    const log = number === null ? undefined : hub?.partitions[number]
    const problem = this.#refusal(text, hub?.entity ?? null, 'Listen')
    if (hub === null || number === null || log === undefined || !hub.hasGroup(address.group) || problem !== null) {
      this.#refuse(link, problem ?? problems.notFound(text))
      return
    }
    const start = wishes.selector === null ? { by: 'latest' as const } : parseSelector(wishes.selector)
    if (start === null) {
      this.#refuse(link, problems.badFilter(wishes.selector ?? ''))
      return
    }
    const reader = new HubReader({
      sender: link,
      hub,
      group: address.group,
      partition: number,
      log,
      from: log.resolve(start),
      epoch: wishes.epoch,
      name: wishes.receiverName ?? link.name,
      metrics: wishes.metrics,
      now: this.#context.now,
      detach: (reason) => this.#detach(link, reason),
    })
    const refused = hub.join(address.group, number, reader)
    if (refused !== null) {
      this.#refuse(link, refused)
      return
    }
    this.#grantSource(link, text)
    this.#served.set(link, {
      link,
      path: audiencePath(text),
      right: 'Listen',
      entity: hub.entity,
      close: () => reader.close(),
      onFlow: (draining) => reader.flow(draining),
    })
  }

  #attachQueueReceiver(link: Sender, address: Address, text: string, wishes: ReceiverWishes): void {
    const node = address.kind === 'entity' ? this.#context.directory.queue(address.path, address.deadLetters) : null
    const problem = this.#refusal(text, node === null ? null : entityOf(text), 'Listen')
    if (node === null || problem !== null) {
      this.#refuse(link, problem ?? problems.notFound(text))
      return
    }
    const { requiresSession } = node.queue.options
    if (requiresSession !== (wishes.session !== undefined)) {
      this.#refuse(link, requiresSession ? problems.sessionsOnly(node.entity) : problems.noSessions(node.entity))
    } else if (wishes.session === undefined) {
      this.#grantSource(link, text)
      this.#serveQueue(link, node, text, null)
    } else {
      this.#acceptSession(link, node, text, wishes.session, wishes.timeoutMs)
    }
  }

  /** A named session is granted or refused at once; the wish for any session waits until one is free. */
  #acceptSession(link: Sender, node: QueueNode, text: string, wanted: string | null, timeoutMs: number): void {
    const attempt = (): 'granted' | 'taken' | 'none' => {
      const session = node.queue.acceptSession(wanted, this.#owner(link.name))
      if (session === 'taken' || session === 'none') return session
      this.#grantSource(link, text, session.id)
      setAttachField(link, 'properties', { 'com.microsoft:locked-until-utc': rhea.types.wrap_long(dotnetTicks(session.until)) })
      this.#serveQueue(link, node, text, session.id)
      return 'granted'
    }
    const first = attempt()
    if (first === 'taken') this.#refuse(link, problems.sessionTaken(wanted ?? ''))
    if (first !== 'none') return
    holdAttach(link)
    const stop = node.seekSession(() => {
      if (attempt() !== 'granted') return false
      clearTimeout(timer)
      link.open()
      return true
    })
    const timer = setTimeout(() => {
      stop()
      this.#served.delete(link)
      link.open()
      this.#refuse(link, problems.noSession())
    }, timeoutMs).unref()
    this.#served.set(link, {
      link,
      path: audiencePath(text),
      right: 'Listen',
      entity: entityOf(text),
      close: () => {
        stop()
        clearTimeout(timer)
        // A peer that gives up before the answer still has to see the attach that its detach is about.
        if (!this.#closed) link.open()
      },
    })
  }

  #serveQueue(link: Sender, node: QueueNode, text: string, sessionId: string | null): void {
    const deletes = link.snd_settle_mode === 1
    const owner = this.#owner(link.name)
    const receiver = new QueueReceiver({ owner, sender: link, node, sessionId, deletes, detach: (reason) => this.#detach(link, reason) })
    this.#served.set(link, {
      link,
      path: audiencePath(text),
      right: 'Listen',
      entity: entityOf(text),
      close: () => receiver.close(),
      onFlow: (draining) => receiver.flow(draining),
      onDisposition: (disposition, delivery) => receiver.settle(disposition, delivery),
    })
  }

  #grantSource(link: Sender, address: string, sessionId?: string): void {
    const filter = sessionId === undefined ? undefined : grantedFilter(sessionId)
    link.set_source({ address, ...(filter === undefined ? {} : { filter }) })
    link.set_target({ address: addressOf(link.target) })
    // The settlement modes are the receiver's choice: peek-lock and receive-and-delete differ in nothing else.
    setAttachField(link, 'snd_settle_mode', link.snd_settle_mode)
    setAttachField(link, 'rcv_settle_mode', link.rcv_settle_mode)
  }

  /** Why a link to this address is not opened; null where it may be. */
  #refusal(address: string, entity: string | null, right: Right | null): AmqpProblem | null {
    const fault = entity === null ? null : this.#context.faults.forAttach(entity)
    if (fault !== null) return fault
    if (this.#allowed(audiencePath(address), right)) return null
    return problems.unauthorized(`${right === null ? 'A valid token is' : `'${right}' claim(s) are`} required for '${address}'.`)
  }

  #allowed(path: string, right: Right | null): boolean {
    return !this.#context.requireToken || this.#claims.allow(path, right)
  }

  #dropUnclaimed(): void {
    for (const { link, path, right } of this.#served.values()) {
      if (path === null || path === '$management' || this.#allowed(path, right)) continue
      this.#detach(link, problems.unauthorized('The token has expired.'))
    }
  }

  /** The answer to an attach that cannot be: an attach without source and target, and a detach that says why. */
  #refuse(link: Link, problem: AmqpProblem): void {
    this.#context.log.debug({ connection: this.#id, link: link.name, ...problem }, 'a link was refused')
    link.close({ condition: problem.condition, description: problem.description })
  }

  #detach(link: Link, problem: AmqpProblem): void {
    this.#forget(link)
    link.close({ condition: problem.condition, description: problem.description })
  }

  #forget(link: Link): void {
    const served = this.#served.get(link)
    this.#served.delete(link)
    served?.close()
  }

  /** Locks belong to a link of a connection; link names alone may repeat. */
  #owner(linkName: string): string {
    return `${this.#id}/${linkName}`
  }
}
