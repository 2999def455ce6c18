import assert from 'node:assert/strict'
import rhea, { type Connection, type link as Link, type Sender, type Session } from 'rhea'

/**
 * Where the broker needs more of rhea than its typings show, all in one place. rhea is made for peers that decide at once and never look at
 * the bytes; a broker holds attaches back, sets fields of the attach reply and keeps messages as they were encoded.
 * Read from the sources of rhea 3.0.5; each access is checked, so that another version fails loudly.
 */

interface TransferFrame {
  readonly performative: { readonly handle: number; readonly delivery_id?: number | null; message_format?: number | null }
  payload?: Buffer | undefined
}

interface SessionInternals {
  on_transfer: (frame: TransferFrame) => void
  readonly outgoing: { readonly next_delivery_id: number; readonly next_pending_delivery: number; readonly available: () => number }
}

interface LinkInternals {
  readonly state: { local_open: boolean; open_requests: number }
  readonly local: { readonly attach: Record<string, unknown> }
}

interface SenderInternals {
  credit: number
  delivery_count: number
  readonly _draining: boolean
  _get_drain: () => boolean
}

/** Stands in for format 0, so that rhea hands over such a message as bytes instead of decoding it and dropping them. */
const undecoded = 0xfffffffe

export interface TransferTap {
  /** Whether the delivery was longer than the limit; its bytes are then cut short. Answers once. */
  takeOversized(deliveryId: number): boolean
}

/** Makes rhea deliver every message of the session as bytes, and never collect more than about `limit` of them for one message. */
export function tapTransfers(session: Session, limit: number): TransferTap {
  const internals = sessionInternals(session)
  const deliver = internals.on_transfer.bind(session)
  const collected = new Map<number, { deliveryId: number; bytes: number }>()
  const oversized = new Set<number>()
  internals.on_transfer = (frame) => {
    const { performative } = frame
    let current = collected.get(performative.handle)
    if (current === undefined || (typeof performative.delivery_id === 'number' && performative.delivery_id !== current.deliveryId)) {
      current = { deliveryId: performative.delivery_id ?? -1, bytes: 0 }
      collected.set(performative.handle, current)
      // The format stands in the first frame of a delivery.
      performative.message_format = performative.message_format || undecoded
    }
    current.bytes += frame.payload?.length ?? 0
    if (current.bytes > limit) {
      oversized.add(current.deliveryId)
      frame.payload = Buffer.alloc(0)
    }
    deliver(frame)
  }
  return { takeOversized: (deliveryId) => oversized.delete(deliveryId) }
}

/** The message format as the sender gave it. */
export function formatOf(delivery: { readonly format: number }): number {
  return delivery.format === undecoded ? 0 : delivery.format
}

/** Sets a field of the attach reply. Only while handling the attach: it is written on the next tick. */
export function setAttachField(
  link: Link,
  field: 'max_message_size' | 'snd_settle_mode' | 'rcv_settle_mode' | 'properties',
  value: unknown,
): void {
  linkInternals(link).local.attach[field] = value
}

/** Keeps the attach reply back until `link.open()`. Only while handling the attach. */
export function holdAttach(link: Link): void {
  const { state } = linkInternals(link)
  state.local_open = false
  state.open_requests = 0
}

/** How many messages may be given to `send` now: credit, less what waits to be written, and never more than the session can track. */
export function sendableCount(sender: Sender): number {
  const { outgoing } = sessionInternals(sender.session)
  const waiting = outgoing.next_delivery_id - outgoing.next_pending_delivery
  return Math.max(0, Math.min(senderInternals(sender).credit - waiting, outgoing.available()))
}

/**
 * rhea answers a drain only while credit is left. A peer that asks for it at the moment in which its last credit is used up would wait for
 * an answer that never comes.
 */
export function answerEveryDrain(sender: Sender): void {
  const internals = senderInternals(sender)
  internals._get_drain = () => {
    if (!internals._draining) return false
    internals.delivery_count += internals.credit
    internals.credit = 0
    return true
  }
}

/** What rhea wants of a socket. */
export interface Wire {
  on(event: 'data' | 'end' | 'error', handler: (value?: unknown) => void): void
  write(bytes: Buffer): void
  end(): void
  destroy(): void
  removeAllListeners(event: string): void
}

/** A server connection of `container` over `wire`. */
export function acceptConnection(container: ReturnType<typeof rhea.create_container>, wire: Wire, options: object): Connection {
  const connection = container.create_connection({ port: 0, ...options })
  const accept: unknown = Reflect.get(connection, 'accept')
  assert(typeof accept === 'function', 'rhea has no Connection.accept')
  accept.call(connection, wire)
  return connection
}

/** What a settled or refused delivery is told. */
export type Outcome = { readonly kind: 'accepted' | 'released' } | { readonly kind: 'rejected'; readonly error: AmqpProblem }

export interface AmqpProblem {
  readonly condition: string
  readonly description: string
}

const outcomeCodes = { accepted: 0x24, rejected: 0x25, released: 0x26 } as const

/** The encoded form of an outcome, for `delivery.update`. */
export function outcomeState(outcome: Outcome): unknown {
  const { types } = rhea
  const fields = outcome.kind === 'rejected' ? [types.wrap_error(outcome.error)] : []
  return types.described(types.wrap_ulong(outcomeCodes[outcome.kind]), types.wrap_list(fields))
}

function sessionInternals(session: unknown): SessionInternals {
  assert(hasSessionInternals(session), 'rhea has another Session than expected')
  return session
}

function hasSessionInternals(value: unknown): value is SessionInternals {
  const outgoing: unknown = property(value, 'outgoing')
  return (
    typeof property(value, 'on_transfer') === 'function' &&
    typeof property(outgoing, 'next_delivery_id') === 'number' &&
    typeof property(outgoing, 'next_pending_delivery') === 'number' &&
    typeof property(outgoing, 'available') === 'function'
  )
}

function linkInternals(link: unknown): LinkInternals {
  assert(hasLinkInternals(link), 'rhea has another link than expected')
  return link
}

function hasLinkInternals(value: unknown): value is LinkInternals {
  const state: unknown = property(value, 'state')
  return (
    typeof property(state, 'local_open') === 'boolean' &&
    typeof property(state, 'open_requests') === 'number' &&
    typeof property(property(value, 'local'), 'attach') === 'object'
  )
}

function senderInternals(sender: unknown): SenderInternals {
  assert(hasSenderInternals(sender), 'rhea has another Sender than expected')
  return sender
}

function hasSenderInternals(value: unknown): value is SenderInternals {
  return (
    typeof property(value, 'credit') === 'number' &&
    typeof property(value, 'delivery_count') === 'number' &&
    typeof property(value, '_get_drain') === 'function'
  )
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
