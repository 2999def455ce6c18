import type { Delivery, Sender } from 'rhea'
import { deliveryTag } from './lock-token.ts'
import { recordOf } from './message.ts'
import { problems } from './problems.ts'
import type { DeadLetter, Settled } from './queue.ts'
import type { QueueNode, Waiter } from './queue-node.ts'
import { outcomeState, sendableCount, type AmqpProblem } from './rhea-internals.ts'
import { encodeHeld } from './service-bus-delivery.ts'

export type Disposition = 'accepted' | 'rejected' | 'released' | 'modified'

/** One receiving link of a queue, subscription or dead-letter sub-queue. */
export class QueueReceiver implements Waiter {
  readonly owner: string
  readonly #sender: Sender
  readonly #node: QueueNode
  readonly #sessionId: string | null
  readonly #deletes: boolean
  readonly #detach: (problem: AmqpProblem) => void
  /** Lock tokens of what is delivered and not settled, by delivery tag. */
  readonly #tokens = new Map<string, string>()
  #closed = false

  constructor(options: {
    readonly owner: string
    readonly sender: Sender
    readonly node: QueueNode
    /** The session that the link holds; null without sessions. */
    readonly sessionId: string | null
    /** Receive and delete instead of peek-lock. */
    readonly deletes: boolean
    readonly detach: (problem: AmqpProblem) => void
  }) {
    this.owner = options.owner
    this.#sender = options.sender
    this.#node = options.node
    this.#sessionId = options.sessionId
    this.#deletes = options.deletes
    this.#detach = options.detach
    this.#node.add(this)
  }

  takeOne(): boolean {
    if (this.#closed || !this.#sender.is_open() || sendableCount(this.#sender) <= 0) return false
    const { queue } = this.#node
    const held = this.#deletes ? queue.removeNext(this.#sessionId) : queue.lockNext(this.#sessionId)
    if (held === null) return false
    const bytes = encodeHeld(held, { source: this.#node.entity })
    if (held.lock === null) {
      this.#sender.send(bytes, undefined, 0)
    } else {
      const tag = deliveryTag(held.lock.token)
      this.#tokens.set(tag.toString('hex'), held.lock.token)
      this.#sender.send(bytes, tag, 0)
    }
    return true
  }

  /** Credit came, or the peer drains. */
  flow(draining: boolean): void {
    this.#node.changed()
    // Whatever there was is on its way: the rest of the credit is given back.
    if (draining) this.#sender.set_drained(true)
  }

  settle(disposition: Disposition, delivery: Delivery): void {
    const tag = Buffer.from(delivery.tag).toString('hex')
    const token = this.#tokens.get(tag)
    const settled = token === undefined ? 'lock-lost' : this.#apply(disposition, token, recordOf(delivery.remote_state))
    this.#tokens.delete(tag)
    const lost = this.#sessionId === null ? problems.messageLockLost() : problems.sessionLockLost()
    delivery.update(true, outcomeState(settled === 'ok' ? { kind: 'accepted' } : { kind: 'rejected', error: lost }))
    // rhea frees a place of its outgoing buffer (2048) only for what both sides settled; our answer is the end of it.
    Object.assign(delivery, { remote_settled: true })
    this.#node.changed()
  }

  lost(): void {
    this.#detach(problems.sessionLockLost())
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#node.remove(this)
    if (this.#sessionId !== null) this.#node.queue.releaseSession(this.#sessionId, this.owner)
    this.#node.changed()
  }

  #apply(disposition: Disposition, token: string, state: Readonly<Record<string, unknown>>): Settled {
    const { queue } = this.#node
    if (disposition === 'accepted') return queue.complete(token)
    if (disposition === 'released') return queue.release(token)
    if (disposition === 'rejected') return queue.deadLetter(token, deadLetterOf(recordOf(state['error'])))
    const changes = recordOf(state['message_annotations'])
    return state['undeliverable_here'] === true ? queue.defer(token, changes) : queue.abandon(token, changes)
  }
}

/** What a rejection says. `info` names reason and description; what else it holds becomes application properties. */
function deadLetterOf(error: Readonly<Record<string, unknown>>): DeadLetter {
  const { DeadLetterReason: reason, DeadLetterErrorDescription: description, ...properties } = recordOf(error['info'])
  return {
    reason: typeof reason === 'string' ? reason : '',
    description: typeof description === 'string' ? description : '',
    properties,
  }
}
