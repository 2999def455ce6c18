import { DuplicateHistory } from './duplicates.ts'
import { Heap } from './heap.ts'
import { SessionTable } from './session-table.ts'

/**
 * One Service Bus queue, subscription or dead-letter sub-queue as a state machine. No sockets and no timers: the clock is given, and
 * `tick()` applies what became due, at the latest at `nextDue()`.
 *
 *   scheduled --time--> active --lock--> locked --complete--> gone
 *                         ^                |---abandon, lock expiry (delivery count + 1)---> active, or dead at the maximum
 *                         |                |---release (session closed)---> active
 *                         |                |---defer---> deferred --lock by number--> locked
 *                         |                `---dead-letter---> dead
 *   active, scheduled or deferred --time to live--> dead or gone
 *
 * Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement
 */
export interface QueueOptions {
  readonly lockMs: number
  readonly maxDeliveryCount: number
  readonly requiresSession: boolean
  /** 0 for none. */
  readonly duplicateDetectionMs: number
  readonly defaultTtlMs: number | null
  readonly deadLetterOnExpiry: boolean
  readonly maxMessages: number
  readonly maxBytes: number
}

export interface QueueClock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** A fresh lock token, unique. */
  readonly token: () => string
}

/** What the queue needs to know of a message; the rest is `payload`, which it never looks into. */
export interface Enqueued<Payload> {
  readonly payload: Payload
  /** What it counts against `maxBytes`. */
  readonly bytes: number
  readonly messageId: string | null
  readonly sessionId: string | null
  readonly ttlMs: number | null
  /** Milliseconds since the epoch; null or past for at once. */
  readonly scheduledAt: number | null
}

export interface DeadLetter {
  readonly reason: string
  readonly description: string
  /** More application properties that the dead letter is to carry. */
  readonly properties: Readonly<Record<string, unknown>>
}

/** A message as the queue holds it. */
export interface Held<Payload> {
  readonly payload: Payload
  readonly bytes: number
  readonly sequenceNumber: number
  /** The number at enqueueing: a scheduled message gets a new one when its time comes. */
  readonly enqueuedSequenceNumber: number
  readonly sessionId: string | null
  readonly enqueuedAt: number
  readonly expiresAt: number | null
  readonly deliveryCount: number
  readonly state: 'active' | 'scheduled' | 'deferred'
  readonly lock: { readonly token: string; readonly until: number } | null
  /** Properties that abandon, defer and dead-letter put on it. */
  readonly modified: Readonly<Record<string, unknown>>
  readonly deadLetter: DeadLetter | null
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export type Settled = 'ok' | 'lock-lost'

export class MessageQueue<Payload> {
  readonly options: QueueOptions
  readonly #clock: QueueClock
  readonly #deadLetters: MessageQueue<Payload> | null
  readonly #held = new Map<number, Mutable<Held<Payload>>>()
  readonly #byToken = new Map<string, Mutable<Held<Payload>>>()
  /** Active and unlocked, by session; messages without one under ''. May name messages that are gone: they are skipped. */
  readonly #ready = new Map<string, Heap>()
  /** When to look at which message again; an entry that no longer applies is skipped. */
  readonly #due = new Heap()
  readonly #duplicates: DuplicateHistory | null
  readonly #sessions: SessionTable
  #lastSequenceNumber = 0
  #bytes = 0

  /** `deadLetters` is null for a dead-letter sub-queue itself, in which nothing dies. */
  constructor(options: QueueOptions, clock: QueueClock, deadLetters: MessageQueue<Payload> | null) {
    this.options = options
    this.#clock = clock
    this.#deadLetters = deadLetters
    this.#duplicates = options.duplicateDetectionMs > 0 ? new DuplicateHistory(options.duplicateDetectionMs) : null
    this.#sessions = new SessionTable(options.lockMs)
  }

  get size(): number {
    return this.#held.size
  }

  /** Why these messages, as one, cannot be taken; null where they can. A batch is taken whole or not at all. */
  refuses(messages: readonly Enqueued<Payload>[]): 'full' | 'session-required' | null {
    if (this.options.requiresSession && messages.some((message) => message.sessionId === null)) return 'session-required'
    const bytes = messages.reduce((sum, message) => sum + message.bytes, this.#bytes)
    return this.#held.size + messages.length > this.options.maxMessages || bytes > this.options.maxBytes ? 'full' : null
  }

  /** The sequence number, or null for a duplicate, which is accepted and dropped. Ask `refuses` first. */
  enqueue(message: Enqueued<Payload>): number | null {
    const now = this.#clock.now()
    if (this.#duplicates !== null && message.messageId !== null) {
      if (this.#duplicates.has(message.messageId, now)) return null
      this.#duplicates.add(message.messageId, now)
    }
    const sequenceNumber = ++this.#lastSequenceNumber
    const scheduled = message.scheduledAt !== null && message.scheduledAt > now ? message.scheduledAt : null
    const enqueuedAt = scheduled ?? now
    const ttlMs = shorter(message.ttlMs, this.options.defaultTtlMs)
    const held: Mutable<Held<Payload>> = {
      payload: message.payload,
      bytes: message.bytes,
      sequenceNumber,
      enqueuedSequenceNumber: sequenceNumber,
      sessionId: message.sessionId,
      enqueuedAt,
      expiresAt: ttlMs === null ? null : enqueuedAt + ttlMs,
      deliveryCount: 0,
      state: scheduled === null ? 'active' : 'scheduled',
      lock: null,
      modified: {},
      deadLetter: null,
    }
    this.#held.set(sequenceNumber, held)
    this.#bytes += held.bytes
    if (scheduled === null) this.#activate(held)
    else this.#due.push(scheduled, sequenceNumber)
    return sequenceNumber
  }

  /** Locks the next message for its receiver; `sessionId` where the receiver holds a session. Null when there is none. */
  lockNext(sessionId: string | null): Held<Payload> | null {
    const held = this.#takeReady(sessionId ?? '')
    return held === null ? null : this.#lock(held)
  }

  /** Receive and delete. */
  removeNext(sessionId: string | null): Held<Payload> | null {
    const held = this.#takeReady(sessionId ?? '')
    if (held !== null) this.#remove(held)
    return held
  }

  /** Locks a deferred message by its number; null where there is none such that is free. */
  lockDeferred(sequenceNumber: number): Held<Payload> | null {
    const held = this.#freeDeferred(sequenceNumber)
    return held === null ? null : this.#lock(held)
  }

  removeDeferred(sequenceNumber: number): Held<Payload> | null {
    const held = this.#freeDeferred(sequenceNumber)
    if (held !== null) this.#remove(held)
    return held
  }

  complete(token: string): Settled {
    const held = this.#locked(token)
    if (held === null) return 'lock-lost'
    this.#remove(held)
    return 'ok'
  }

  abandon(token: string, modified: Readonly<Record<string, unknown>>): Settled {
    const held = this.#locked(token)
    if (held === null) return 'lock-lost'
    held.modified = { ...held.modified, ...modified }
    this.#unlock(held, { counts: true })
    return 'ok'
  }

  /** Gives a message back as if it had never been delivered. */
  release(token: string): Settled {
    const held = this.#locked(token)
    if (held === null) return 'lock-lost'
    this.#unlock(held, { counts: false })
    return 'ok'
  }

  defer(token: string, modified: Readonly<Record<string, unknown>>): Settled {
    const held = this.#locked(token)
    if (held === null) return 'lock-lost'
    held.modified = { ...held.modified, ...modified }
    held.state = 'deferred'
    this.#unlock(held, { counts: false })
    return 'ok'
  }

  deadLetter(token: string, deadLetter: DeadLetter): Settled {
    const held = this.#locked(token)
    if (held === null) return 'lock-lost'
    if (this.#deadLetters === null) this.#unlock(held, { counts: false })
    else this.#bury(held, deadLetter)
    return 'ok'
  }

  /** Until when the lock now holds; null where it is lost. */
  renew(token: string): number | null {
    const held = this.#locked(token)
    if (held === null || held.lock === null) return null
    const until = this.#clock.now() + this.options.lockMs
    held.lock = { token, until }
    this.#due.push(until, held.sequenceNumber)
    return until
  }

  /** Messages in any state from `fromSequenceNumber` on, without locking them. */
  peek(fromSequenceNumber: number, count: number, sessionId: string | null): Held<Payload>[] {
    const now = this.#clock.now()
    return [...this.#held.values()]
      .filter((held) => held.sequenceNumber >= fromSequenceNumber && (sessionId === null || held.sessionId === sessionId))
      .filter((held) => held.expiresAt === null || held.expiresAt > now || held.lock !== null)
      .toSorted((a, b) => a.sequenceNumber - b.sequenceNumber)
      .slice(0, count)
  }

  /** False where no scheduled message has this number. */
  cancelScheduled(sequenceNumber: number): boolean {
    const held = this.#held.get(sequenceNumber)
    if (held?.state !== 'scheduled') return false
    this.#remove(held)
    return true
  }

  /** Locks a session, or with null the session of the oldest waiting message that nobody holds. */
  acceptSession(id: string | null, owner: string): { id: string; until: number } | 'taken' | 'none' {
    const wanted = id ?? this.#nextSession()
    if (wanted === null) return 'none'
    const until = this.#sessions.accept(wanted, owner, this.#clock.now())
    return until === null ? 'taken' : { id: wanted, until }
  }

  holdsSession(id: string, owner: string): boolean {
    return this.#sessions.isHeldBy(id, owner)
  }

  renewSession(id: string, owner: string): number | null {
    return this.#sessions.renew(id, owner, this.#clock.now())
  }

  /** Ends the hold of `owner`, whose locked messages come free with their delivery count as it was. */
  releaseSession(id: string, owner: string): void {
    for (const number of this.#sessions.release(id, owner) ?? []) this.#freed(number, { counts: false })
  }

  sessionState(id: string): Buffer | null {
    return this.#sessions.state(id)
  }

  setSessionState(id: string, state: Buffer | null): void {
    this.#sessions.setState(id, state)
  }

  /** Sessions that have messages or a state, sorted. */
  sessionIds(): string[] {
    const ids = new Set(this.#sessions.withState())
    for (const held of this.#held.values()) if (held.sessionId !== null) ids.add(held.sessionId)
    return [...ids].toSorted()
  }

  /** Applies all that is due: schedules, lock expiry, time to live. Gives the sessions whose locks were lost. */
  tick(): readonly { id: string; owner: string }[] {
    const now = this.#clock.now()
    const lost = this.#sessions.expired(now)
    for (const { id, owner } of lost) {
      for (const number of this.#sessions.release(id, owner) ?? []) this.#freed(number, { counts: true })
    }
    for (let due = this.#due.peek(); due !== undefined && due.rank <= now; due = this.#due.peek()) {
      this.#due.pop()
      const held = this.#held.get(due.number)
      if (held !== undefined) this.#review(held, now)
    }
    return lost
  }

  /** Milliseconds since the epoch; null when nothing is pending. May be early, never late. */
  nextDue(): number | null {
    const message = this.#due.peek()?.rank ?? null
    const session = this.#sessions.nextDue()
    return message === null || (session !== null && session < message) ? session : message
  }

  #review(held: Mutable<Held<Payload>>, now: number): void {
    if (held.state === 'scheduled' && held.enqueuedAt <= now) {
      this.#held.delete(held.sequenceNumber)
      held.sequenceNumber = ++this.#lastSequenceNumber
      held.state = 'active'
      this.#held.set(held.sequenceNumber, held)
      this.#activate(held)
    } else if (held.lock !== null) {
      if (!this.#locksBySession(held) && held.lock.until <= now) this.#unlock(held, { counts: true })
    } else if (held.state !== 'scheduled' && isExpired(held, now)) {
      this.#expire(held)
    }
  }

  #activate(held: Held<Payload>): void {
    this.#makeReady(held)
    if (held.expiresAt !== null) this.#due.push(held.expiresAt, held.sequenceNumber)
  }

  #makeReady(held: Held<Payload>): void {
    const key = this.#readyKey(held)
    let heap = this.#ready.get(key)
    if (heap === undefined) this.#ready.set(key, (heap = new Heap()))
    heap.push(held.sequenceNumber, held.sequenceNumber)
  }

  #readyKey(held: Held<Payload>): string {
    return this.options.requiresSession ? (held.sessionId ?? '') : ''
  }

  #takeReady(key: string): Mutable<Held<Payload>> | null {
    const held = this.#firstReady(key)
    if (held !== null) this.#ready.get(key)?.pop()
    return held
  }

  /** The first of the heap that is really there, ready and alive; what is not is dropped on the way. */
  #firstReady(key: string): Mutable<Held<Payload>> | null {
    const heap = this.#ready.get(key)
    if (heap === undefined) return null
    const now = this.#clock.now()
    for (let next = heap.peek(); next !== undefined; next = heap.peek()) {
      const held = this.#held.get(next.number)
      if (held !== undefined && held.state === 'active' && held.lock === null) {
        if (!isExpired(held, now)) return held
        this.#expire(held)
      }
      heap.pop()
    }
    this.#ready.delete(key)
    return null
  }

  #nextSession(): string | null {
    let found: { id: string; sequenceNumber: number } | null = null
    for (const id of this.#ready.keys()) {
      if (this.#sessions.isHeld(id)) continue
      const first = this.#firstReady(id)
      if (first !== null && (found === null || first.sequenceNumber < found.sequenceNumber)) {
        found = { id, sequenceNumber: first.sequenceNumber }
      }
    }
    return found?.id ?? null
  }

  #freeDeferred(sequenceNumber: number): Mutable<Held<Payload>> | null {
    const held = this.#held.get(sequenceNumber)
    if (held?.state !== 'deferred' || held.lock !== null) return null
    if (!isExpired(held, this.#clock.now())) return held
    this.#expire(held)
    return null
  }

  #lock(held: Mutable<Held<Payload>>): Held<Payload> {
    const token = this.#clock.token()
    const bySession = this.#locksBySession(held)
    const until = (bySession && held.sessionId !== null ? this.#sessions.lockedUntil(held.sessionId) : null) ?? this.#lockEnd()
    held.lock = { token, until }
    this.#byToken.set(token, held)
    if (bySession && held.sessionId !== null) this.#sessions.hold(held.sessionId, held.sequenceNumber)
    else this.#due.push(until, held.sequenceNumber)
    return held
  }

  #lockEnd(): number {
    return this.#clock.now() + this.options.lockMs
  }

  /** A message of a held session lives and dies with the lock of the session, not with one of its own. */
  #locksBySession(held: Held<Payload>): boolean {
    return this.options.requiresSession && held.sessionId !== null && this.#sessions.isHeld(held.sessionId)
  }

  #locked(token: string): Mutable<Held<Payload>> | null {
    this.tick()
    return this.#byToken.get(token) ?? null
  }

  #freed(sequenceNumber: number, how: { counts: boolean }): void {
    const held = this.#held.get(sequenceNumber)
    if (held !== undefined && held.lock !== null) this.#unlock(held, how)
  }

  #unlock(held: Mutable<Held<Payload>>, { counts }: { counts: boolean }): void {
    this.#forgetLock(held)
    if (counts) held.deliveryCount += 1
    if (counts && this.#deadLetters !== null && held.deliveryCount >= this.options.maxDeliveryCount) {
      this.#bury(held, {
        reason: 'MaxDeliveryCountExceeded',
        description: `Message could not be consumed after ${this.options.maxDeliveryCount} delivery attempts.`,
        properties: {},
      })
    } else if (isExpired(held, this.#clock.now())) {
      this.#expire(held)
    } else if (held.state === 'active') {
      this.#makeReady(held)
    }
  }

  #forgetLock(held: Mutable<Held<Payload>>): void {
    if (held.lock === null) return
    this.#byToken.delete(held.lock.token)
    if (held.sessionId !== null) this.#sessions.letGo(held.sessionId, held.sequenceNumber)
    held.lock = null
  }

  #remove(held: Mutable<Held<Payload>>): void {
    this.#forgetLock(held)
    if (this.#held.delete(held.sequenceNumber)) this.#bytes -= held.bytes
  }

  #expire(held: Mutable<Held<Payload>>): void {
    if (this.options.deadLetterOnExpiry) {
      this.#bury(held, { reason: 'TTLExpiredException', description: 'The message expired and was dead lettered.', properties: {} })
    } else {
      this.#remove(held)
    }
  }

  #bury(held: Mutable<Held<Payload>>, deadLetter: DeadLetter): void {
    this.#remove(held)
    this.#deadLetters?.adopt({ ...held, deadLetter })
  }

  /** Takes in a dead letter under its old number. A full sub-queue loses its oldest, so that memory stays bounded. */
  adopt(dead: Held<Payload>): void {
    for (const oldest of this.#held.values()) {
      if (this.#held.size < this.options.maxMessages && this.#bytes + dead.bytes <= this.options.maxBytes) break
      this.#remove(oldest)
    }
    const held: Mutable<Held<Payload>> = { ...dead, state: 'active', lock: null, expiresAt: null }
    this.#held.set(held.sequenceNumber, held)
    this.#bytes += held.bytes
    this.#makeReady(held)
  }
}

function isExpired(held: Held<unknown>, now: number): boolean {
  return held.expiresAt !== null && held.expiresAt <= now
}

function shorter(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}
