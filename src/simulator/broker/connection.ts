import rhea, { type Connection, type Delivery, type EventContext, type Sender, type Session } from 'rhea'
import { Admission } from './admission.ts'
import { attachIncoming } from './attach-incoming.ts'
import { attachOutgoing } from './attach-outgoing.ts'
import { Claims } from './claims.ts'
import type { ConnectionPort } from './connection-port.ts'
import type { BrokerContext } from './context.ts'
import { Links } from './links.ts'
import { maxFrameBytes, type Peer } from './peer.ts'
import { acceptConnection, tapTransfers, type AmqpProblem, type TransferTap } from './rhea-internals.ts'

/** Every peer must be able to take so much: AMQP 1.0 part 2.4.1. */
const minFrameBytes = 512
/** A peer that says nothing for four minutes, as in Azure, is gone: rhea waits twice this time. */
const idleTimeoutMs = 120_000

const settings = {
  container_id: 'foreshock-broker',
  max_frame_size: maxFrameBytes,
  idle_time_out: idleTimeoutMs,
  // Outcomes and credit are given by hand.
  receiver_options: { autoaccept: false, credit_window: 0 },
  sender_options: { treat_modified_as_released: false },
}

/** One peer: its AMQP connection, the claims that it put, and the links that it attached. */
export class BrokerConnection implements ConnectionPort {
  readonly context: BrokerContext
  readonly links: Links
  readonly claims: Claims
  readonly admission: Admission
  readonly #peer: Peer
  readonly #id: string
  readonly #connection: Connection
  readonly #taps = new WeakMap<Session, TransferTap>()
  #closed = false

  constructor(peer: Peer, id: string, context: BrokerContext) {
    this.#peer = peer
    this.#id = id
    this.context = context
    this.links = new Links(context.log)
    this.claims = new Claims(context.now, () => {
      this.links.detachWhere((served) => this.admission.expiry(served))
    })
    this.admission = new Admission(this.claims, context)
    const container = rhea.create_container({ id: settings.container_id })
    container.sasl_server_mechanisms.enable_anonymous()
    // This starts to read, but the first byte comes in a later turn, when the listeners are in place.
    this.#connection = acceptConnection(container, peer, settings)
    this.#listen()
  }

  owner(linkName: string): string {
    return `${this.#id}/${linkName}`
  }

  /** `$cbs` replies go by the name of the link, management replies by its target address. */
  replyLink(replyTo: string): Sender | undefined {
    return this.#connection.find_sender((sender: Sender) => sender.name === replyTo || sender.target?.address === replyTo)
  }

  takeOversized(delivery: Delivery): boolean {
    return this.#taps.get(delivery.link.session)?.takeOversized(delivery.id) ?? false
  }

  drop(): void {
    this.#peer.destroy()
  }

  isClosed(): boolean {
    return this.#closed
  }

  /** Detaches the links of an entity (null: of all) and tells why. Gives their number. */
  detachLinks(entity: string | null, problem: AmqpProblem): number {
    const wanted = entity?.toLowerCase()
    return this.links.detachWhere((served) => {
      if (served.path === null) return null
      return wanted === undefined || served.entity.toLowerCase() === wanted ? problem : null
    })
  }

  /** To be called when the socket is gone. */
  closed(): void {
    this.#closed = true
    this.claims.close()
    this.links.forgetWhere(() => true)
  }

  #listen(): void {
    this.#on('connection_open', ({ connection }) => {
      // rhea cuts messages to this size less 50 bytes, and never comes to an end where nothing is left.
      const size = connection.max_frame_size ?? maxFrameBytes
      if (size < minFrameBytes) throw new RangeError(`a max-frame-size of ${size} is below the ${minFrameBytes} of AMQP`)
    })
    this.#on('session_open', ({ session }) => {
      // One message in its envelope; what is longer than its entity allows is refused once it is complete.
      const limit = this.context.directory.maxMessageBytes + maxFrameBytes
      if (session !== undefined) this.#taps.set(session, tapTransfers(session, limit))
    })
    this.#on('receiver_open', ({ receiver }) => {
      if (receiver !== undefined) attachIncoming(receiver, this)
    })
    this.#on('sender_open', ({ sender }) => {
      if (sender !== undefined) attachOutgoing(sender, this)
    })
    this.#on('message', ({ receiver, delivery, message }) => {
      const raw: unknown = message
      if (delivery !== undefined && Buffer.isBuffer(raw)) this.links.find(receiver)?.onDelivery?.(delivery, raw)
    })
    this.#on('sender_flow', ({ sender }) => this.links.find(sender)?.onFlow?.(false))
    this.#on('sendable', ({ sender }) => this.links.find(sender)?.onFlow?.(false))
    this.#on('sender_draining', ({ sender }) => this.links.find(sender)?.onFlow?.(true))
    for (const disposition of ['accepted', 'rejected', 'released', 'modified'] as const) {
      this.#on(disposition, ({ sender, delivery }) => {
        if (delivery !== undefined) this.links.find(sender)?.onDisposition?.(disposition, delivery)
      })
    }
    for (const event of ['receiver_close', 'sender_close', 'receiver_error', 'sender_error']) {
      this.#on(event, ({ sender, receiver }) => {
        const link = sender ?? receiver
        if (link !== undefined) this.links.forget(link)
      })
    }
    this.#on('session_close', ({ session }) => this.links.forgetWhere(({ link }) => link.session === session))
    // Without a listener rhea throws, or writes to the console.
    for (const event of ['connection_close', 'connection_error', 'session_error', 'disconnected', 'settled']) {
      this.#on(event, () => {})
    }
    for (const event of ['error', 'protocol_error']) {
      this.#connection.on(event, (error: unknown) => {
        this.context.remember('a peer broke the protocol', error)
        this.#peer.destroy()
      })
    }
  }

  /** A failure in a handler must cost one connection, not the broker. */
  #on(event: string, handler: (context: EventContext) => void): void {
    this.#connection.on(event, (context: EventContext) => {
      try {
        handler(context)
      } catch (error) {
        this.context.remember(`handling ${event}`, error)
        this.#peer.destroy()
      }
    })
  }
}
