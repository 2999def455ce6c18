import type { Entities, QueueEntity, SubscriptionEntity } from './entities.ts'
import type { Address } from './address.ts'
import { HubNode } from './hub-node.ts'
import type { AcceptedMessage } from './message.ts'
import { MessageQueue, type QueueClock, type QueueOptions } from './queue.ts'
import { QueueNode } from './queue-node.ts'
import type { SendTarget } from './send-target.ts'
import { TopicNode, type Subscription } from './topic-node.ts'

/** All entities of a broker, found by name without regard to case. */
export class Directory {
  readonly #hubs = new Map<string, HubNode>()
  /** Queues by name, subscriptions as `{topic}/subscriptions/{name}`. */
  readonly #queues = new Map<string, QueueNode>()
  readonly #topics = new Map<string, TopicNode>()

  constructor(entities: Entities, clock: QueueClock) {
    const { now } = clock
    for (const hub of entities.eventHubs) this.#hubs.set(hub.name.toLowerCase(), new HubNode(hub, now))
    for (const queue of entities.queues) {
      this.#queues.set(
        queue.name.toLowerCase(),
        queueNode(queue.name, queue, queue.maxMessageBytes, queue.duplicateDetectionSeconds, clock),
      )
    }
    for (const topic of entities.topics) {
      const subscriptions = new Map<string, Subscription>()
      for (const subscription of topic.subscriptions) {
        const path = `${topic.name}/Subscriptions/${subscription.name}`
        const node = queueNode(path, subscription, topic.maxMessageBytes, 0, clock)
        this.#queues.set(path.toLowerCase(), node)
        subscriptions.set(subscription.name.toLowerCase(), { node, filter: subscription.filter })
      }
      const { name, maxMessageBytes } = topic
      const duplicateDetectionMs = topic.duplicateDetectionSeconds * 1000
      this.#topics.set(name.toLowerCase(), new TopicNode({ entity: name, maxMessageBytes, duplicateDetectionMs, subscriptions, now }))
    }
  }

  hub(name: string): HubNode | null {
    return this.#hubs.get(name.toLowerCase()) ?? null
  }

  topic(name: string): TopicNode | null {
    return this.#topics.get(name.toLowerCase()) ?? null
  }

  queue(path: string, deadLetters: boolean): QueueNode | null {
    const node = this.#queues.get(path.toLowerCase()) ?? null
    return deadLetters ? (node?.deadLetters ?? null) : node
  }

  /** Where messages for the address go; null where nothing can be sent. */
  sendTarget(address: Address): SendTarget | null {
    if (address.kind === 'partition') return this.hub(address.hub)?.partitionTarget(address.partition) ?? null
    if (address.kind !== 'entity' || address.deadLetters || address.path.toLowerCase().includes('/subscriptions/')) return null
    return this.hub(address.path) ?? this.topic(address.path) ?? this.queue(address.path, false)
  }

  /** The largest message that any entity takes. */
  get maxMessageBytes(): number {
    const all = [...this.#hubs.values(), ...this.#queues.values(), ...this.#topics.values()]
    return Math.max(0, ...all.map((node) => node.maxMessageBytes))
  }

  /** Looks at every queue anew, as after a jump of the clock. */
  tick(): void {
    for (const node of this.#queues.values()) node.changed()
  }

  close(): void {
    for (const node of this.#queues.values()) node.close()
  }
}

function queueNode(
  entity: string,
  settings: QueueEntity | SubscriptionEntity,
  maxMessageBytes: number,
  duplicateDetectionSeconds: number,
  clock: QueueClock,
): QueueNode {
  const { now } = clock
  const options: QueueOptions = {
    lockMs: settings.lockSeconds * 1000,
    maxDeliveryCount: settings.maxDeliveryCount,
    requiresSession: settings.requiresSession,
    duplicateDetectionMs: duplicateDetectionSeconds * 1000,
    defaultTtlMs: settings.defaultTtlSeconds === null ? null : settings.defaultTtlSeconds * 1000,
    deadLetterOnExpiry: settings.deadLetterOnExpiry,
    maxMessages: settings.maxMessages,
    maxBytes: settings.maxMegabytes * 1_048_576,
  }
  const deadOptions: QueueOptions = {
    ...options,
    requiresSession: false,
    duplicateDetectionMs: 0,
    defaultTtlMs: null,
    deadLetterOnExpiry: false,
  }
  const deadQueue = new MessageQueue<AcceptedMessage>(deadOptions, clock, null)
  const deadLetters = new QueueNode({ entity: `${entity}/$DeadLetterQueue`, maxMessageBytes, queue: deadQueue, deadLetters: null, now })
  const queue = new MessageQueue<AcceptedMessage>(options, clock, deadQueue)
  return new QueueNode({ entity, maxMessageBytes, queue, deadLetters, now })
}
