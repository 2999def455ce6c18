import { DuplicateHistory } from './duplicates.ts'
import type { CorrelationFilter } from './entities.ts'
import { passes } from './filter.ts'
import type { AcceptedMessage } from './message.ts'
import { enqueued, type QueueNode } from './queue-node.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import type { SendTarget } from './send-target.ts'

export interface Subscription {
  readonly node: QueueNode
  readonly filter: CorrelationFilter | undefined
}

/** At most so many scheduled messages can be cancelled; of older ones the number is forgotten. */
const cancellable = 10_000

/** A topic: every message goes to each subscription whose filter it passes. It keeps nothing itself. */
export class TopicNode implements SendTarget {
  readonly entity: string
  readonly maxMessageBytes: number
  readonly subscriptions: ReadonlyMap<string, Subscription>
  readonly #now: () => number
  readonly #duplicates: DuplicateHistory | null
  readonly #scheduled = new Map<number, { node: QueueNode; sequenceNumber: number }[]>()
  #lastSequenceNumber = 0

  constructor(options: {
    readonly entity: string
    readonly maxMessageBytes: number
    readonly duplicateDetectionMs: number
    readonly subscriptions: ReadonlyMap<string, Subscription>
    readonly now: () => number
  }) {
    this.entity = options.entity
    this.maxMessageBytes = options.maxMessageBytes
    this.subscriptions = options.subscriptions
    this.#now = options.now
    this.#duplicates = options.duplicateDetectionMs > 0 ? new DuplicateHistory(options.duplicateDetectionMs) : null
  }

  accept(messages: readonly AcceptedMessage[]): AmqpProblem | null {
    const problem = this.#refuses(messages)
    if (problem !== null) return problem
    for (const message of messages) this.#publish(message)
    this.#changed()
    return null
  }

  /** One number a message, by which it can be cancelled; or why none was taken. */
  schedule(messages: readonly AcceptedMessage[]): readonly number[] | AmqpProblem {
    const problem = this.#refuses(messages)
    if (problem !== null) return problem
    const numbers = messages.map((message) => {
      const copies = this.#publish(message)
      const number = ++this.#lastSequenceNumber
      this.#scheduled.set(number, copies)
      return number
    })
    for (const number of this.#scheduled.keys()) {
      if (this.#scheduled.size <= cancellable) break
      this.#scheduled.delete(number)
    }
    this.#changed()
    return numbers
  }

  cancelScheduled(number: number): boolean {
    const copies = this.#scheduled.get(number)
    this.#scheduled.delete(number)
    return copies?.map(({ node, sequenceNumber }) => node.queue.cancelScheduled(sequenceNumber)).includes(true) ?? false
  }

  close(): void {
    for (const { node } of this.subscriptions.values()) node.close()
  }

  #refuses(messages: readonly AcceptedMessage[]): AmqpProblem | null {
    for (const { node, filter } of this.subscriptions.values()) {
      const problem = node.refuses(messages.filter((message) => passes(message, filter)))
      if (problem !== null) return problem
    }
    return null
  }

  #publish(message: AcceptedMessage): { node: QueueNode; sequenceNumber: number }[] {
    const now = this.#now()
    if (this.#duplicates !== null && message.messageId !== null) {
      if (this.#duplicates.has(message.messageId, now)) return []
      this.#duplicates.add(message.messageId, now)
    }
    const copies = []
    for (const { node, filter } of this.subscriptions.values()) {
      if (!passes(message, filter)) continue
      const sequenceNumber = node.queue.enqueue(enqueued(message))
      if (sequenceNumber !== null) copies.push({ node, sequenceNumber })
    }
    return copies
  }

  #changed(): void {
    for (const { node } of this.subscriptions.values()) node.changed()
  }
}
