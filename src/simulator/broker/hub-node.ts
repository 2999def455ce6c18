import type { EventHubEntity } from './entities.ts'
import { EventLog } from './event-log.ts'
import type { AcceptedMessage } from './message.ts'
import { partitionOfKey } from './partition-key.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import type { SendTarget } from './send-target.ts'
import { problems } from './problems.ts'

/** Somebody who reads a partition in a consumer group. */
export interface Reader {
  /** Hands over what is new, as far as there is credit. */
  pump(): void
  /** Null for one that shares the partition. */
  readonly epoch: number | null
  readonly name: string
  stolen(problem: AmqpProblem): void
}

/** So many may read one partition in one consumer group side by side, as in Azure. */
const maxReaders = 5

/** An event hub: its partitions, and who reads them. */
export class HubNode implements SendTarget {
  readonly entity: string
  readonly maxMessageBytes: number
  readonly createdAt: number
  readonly partitions: readonly EventLog[]
  readonly #groups: ReadonlySet<string>
  readonly #now: () => number
  /** By consumer group and partition. */
  readonly #readers = new Map<string, Set<Reader>>()
  #nextPartition = 0

  constructor(entity: EventHubEntity, now: () => number) {
    this.entity = entity.name
    this.maxMessageBytes = entity.maxMessageBytes
    this.partitions = Array.from(
      { length: entity.partitions },
      () => new EventLog(entity.retainedEvents, entity.retainedMegabytes * 1_048_576),
    )
    this.#groups = new Set(['$default', ...entity.consumerGroups.map((group) => group.toLowerCase())])
    this.#now = now
    this.createdAt = now()
  }

  /** Events with a key go to its partition, the others in turns; a batch is never split. */
  accept(messages: readonly AcceptedMessage[], partitionKey: string | null): AmqpProblem | null {
    const key = partitionKey ?? messages[0]?.partitionKey ?? null
    const partition = key === null ? this.#nextPartition++ % this.partitions.length : partitionOfKey(key, this.partitions.length)
    return this.#append(partition, messages, key)
  }

  /** The target that one partition is; null where there is no such partition. */
  partitionTarget(partition: string): SendTarget | null {
    const number = this.partitionNumber(partition)
    if (number === null) return null
    return {
      entity: this.entity,
      maxMessageBytes: this.maxMessageBytes,
      accept: (messages, partitionKey) => this.#append(number, messages, partitionKey),
    }
  }

  partitionNumber(partition: string): number | null {
    const number = Number(partition)
    return /^\d+$/.test(partition) && number < this.partitions.length ? number : null
  }

  hasGroup(group: string): boolean {
    return this.#groups.has(group.toLowerCase())
  }

  /**
   * Lets a reader in. One with an epoch takes the partition for itself from everyone with a lower or equal or no epoch; one without may not
   * join while somebody has one. Gives the reason where it is not let in.
   */
  join(group: string, partition: number, reader: Reader): AmqpProblem | null {
    const readers = this.#readersOf(group, partition)
    const highest = [...readers].find((other) => other.epoch !== null)
    if (reader.epoch === null) {
      if (highest !== undefined) return stolenBy(highest, reader)
      if (readers.size >= maxReaders) {
        return { condition: 'amqp:resource-limit-exceeded', description: `Exceeded the maximum number of ${maxReaders} receivers.` }
      }
    } else {
      if (highest !== undefined && (highest.epoch ?? 0) > reader.epoch) return stolenBy(highest, reader)
      for (const other of readers) {
        readers.delete(other)
        other.stolen(stolenBy(reader, other))
      }
    }
    readers.add(reader)
    return null
  }

  leave(group: string, partition: number, reader: Reader): void {
    this.#readersOf(group, partition).delete(reader)
  }

  #append(partition: number, messages: readonly AcceptedMessage[], partitionKey: string | null): AmqpProblem | null {
    const log = this.partitions[partition]
    if (log === undefined) return problems.notFound(`${this.entity}/Partitions/${partition}`)
    const now = this.#now()
    for (const message of messages) log.append(message, message.partitionKey ?? partitionKey, now)
    for (const [key, readers] of this.#readers) {
      if (key.endsWith(`/${partition}`)) for (const reader of readers) reader.pump()
    }
    return null
  }

  #readersOf(group: string, partition: number): Set<Reader> {
    const key = `${group.toLowerCase()}/${partition}`
    let readers = this.#readers.get(key)
    if (readers === undefined) this.#readers.set(key, (readers = new Set()))
    return readers
  }
}

function stolenBy(winner: Reader, loser: Reader): AmqpProblem {
  return problems.stolen(
    `New receiver '${winner.name}' with higher epoch of '${winner.epoch}' is created hence current receiver '${loser.name}' with epoch '${loser.epoch ?? 'none'}' is getting disconnected.`,
  )
}
