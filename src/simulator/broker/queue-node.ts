import type { AcceptedMessage } from './message.ts'
import { problems } from './problems.ts'
import type { Enqueued, MessageQueue } from './queue.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import type { SendTarget } from './send-target.ts'

/** Somebody who waits for messages of a queue. */
export interface Waiter {
  /** Takes one message if it can; false when it has no credit or there is none for it. */
  takeOne(): boolean
  /** Its session was lost. */
  lost(sessionId: string): void
  readonly owner: string
}

const longestTimer = 2_147_483_647

/** A queue, a subscription or a dead-letter sub-queue: the state machine with its timer and those who wait for messages. */
export class QueueNode implements SendTarget {
  readonly entity: string
  readonly maxMessageBytes: number
  readonly queue: MessageQueue<AcceptedMessage>
  readonly deadLetters: QueueNode | null
  readonly #now: () => number
  /** In the order of their turns. */
  readonly #waiters = new Set<Waiter>()
  readonly #sessionSeekers = new Set<() => boolean>()
  #timer: { readonly due: number; readonly handle: NodeJS.Timeout } | null = null
  #closed = false

  constructor(options: {
    readonly entity: string
    readonly maxMessageBytes: number
    readonly queue: MessageQueue<AcceptedMessage>
    readonly deadLetters: QueueNode | null
    readonly now: () => number
  }) {
    this.entity = options.entity
    this.maxMessageBytes = options.maxMessageBytes
    this.queue = options.queue
    this.deadLetters = options.deadLetters
    this.#now = options.now
  }

  accept(messages: readonly AcceptedMessage[]): AmqpProblem | null {
    const problem = this.refuses(messages)
    if (problem !== null) return problem
    for (const message of messages) this.queue.enqueue(enqueued(message))
    this.changed()
    return null
  }

  refuses(messages: readonly AcceptedMessage[]): AmqpProblem | null {
    const reason = this.queue.refuses(messages.map(enqueued))
    if (reason === null) return null
    return reason === 'full' ? problems.full(this.entity) : problems.sessionRequired(this.entity)
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
  }

  remove(waiter: Waiter): void {
    this.#waiters.delete(waiter)
  }

  /** `seek` is called whenever a session may have come free, until it answers true. Gives the way to stop. */
  seekSession(seek: () => boolean): () => void {
    this.#sessionSeekers.add(seek)
    return () => {
      this.#sessionSeekers.delete(seek)
    }
  }

  /** To be called after every change: hands out what is ready, in turns, and sets the timer. */
  changed(): void {
    for (const lost of this.queue.tick()) {
      for (const waiter of this.#waiters) if (waiter.owner === lost.owner) waiter.lost(lost.id)
    }
    for (const seek of this.#sessionSeekers) if (seek()) this.#sessionSeekers.delete(seek)
    for (let progress = true; progress;) {
      progress = false
      const turn = [...this.#waiters]
      for (const waiter of turn) {
        if (!waiter.takeOne()) continue
        progress = true
        // Whoever got one goes to the end of the line.
        if (this.#waiters.delete(waiter)) this.#waiters.add(waiter)
      }
    }
    this.deadLetters?.changed()
    this.#arm()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer?.handle)
    this.deadLetters?.close()
  }

  #arm(): void {
    const due = this.#closed ? null : this.queue.nextDue()
    if (due === (this.#timer?.due ?? null)) return
    clearTimeout(this.#timer?.handle)
    this.#timer = null
    if (due === null) return
    const wait = Math.min(Math.max(0, due - this.#now()), longestTimer)
    const handle = setTimeout(() => {
      this.#timer = null
      this.changed()
    }, wait)
    this.#timer = { due, handle: handle.unref() }
  }
}

export function enqueued(message: AcceptedMessage): Enqueued<AcceptedMessage> {
  const { messageId, sessionId, ttlMs, scheduledAt } = message
  return { payload: message, bytes: message.raw.length, messageId, sessionId, ttlMs, scheduledAt }
}
