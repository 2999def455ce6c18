import rhea, { type Sender } from 'rhea'
import type { EventLog, LoggedEvent } from './event-log.ts'
import type { HubNode, Reader } from './hub-node.ts'
import { encodeDelivery } from './message.ts'
import { sendableCount, type AmqpProblem } from './rhea-internals.ts'

/** One consumer of one partition. */
export class HubReader implements Reader {
  readonly epoch: number | null
  readonly name: string
  readonly #sender: Sender
  readonly #hub: HubNode
  readonly #group: string
  readonly #partition: number
  readonly #log: EventLog
  readonly #metrics: boolean
  readonly #now: () => number
  readonly #detach: (problem: AmqpProblem) => void
  #next: number

  constructor(options: {
    readonly sender: Sender
    readonly hub: HubNode
    readonly group: string
    readonly partition: number
    readonly log: EventLog
    readonly from: number
    readonly epoch: number | null
    readonly name: string
    /** Tell the end of the partition with each event. */
    readonly metrics: boolean
    readonly now: () => number
    readonly detach: (problem: AmqpProblem) => void
  }) {
    this.#sender = options.sender
    this.#hub = options.hub
    this.#group = options.group
    this.#partition = options.partition
    this.#log = options.log
    this.#next = options.from
    this.epoch = options.epoch
    this.name = options.name
    this.#metrics = options.metrics
    this.#now = options.now
    this.#detach = options.detach
  }

  pump(): void {
    if (!this.#sender.is_open()) return
    for (let credit = sendableCount(this.#sender); credit > 0; credit -= 1) {
      const event = this.#log.read(this.#next)
      if (event === undefined) return
      this.#sender.send(this.#encode(event), undefined, 0)
      this.#next = event.sequenceNumber + 1
    }
  }

  flow(draining: boolean): void {
    this.pump()
    if (draining) this.#sender.set_drained(true)
  }

  stolen(problem: AmqpProblem): void {
    this.#detach(problem)
  }

  close(): void {
    this.#hub.leave(this.#group, this.#partition, this)
  }

  #encode(event: LoggedEvent): Buffer {
    const { types } = rhea
    const annotations: Record<string, unknown> = {
      'x-opt-sequence-number': types.wrap_long(event.sequenceNumber),
      'x-opt-offset': String(event.offset),
      'x-opt-enqueued-time': types.wrap_timestamp(event.enqueuedAt),
    }
    if (event.partitionKey !== null) annotations['x-opt-partition-key'] = event.partitionKey
    const { last } = this.#log
    if (!this.#metrics || last === undefined) return encodeDelivery(event.message, { annotations })
    const deliveryAnnotations = {
      last_enqueued_sequence_number: types.wrap_long(last.sequenceNumber),
      last_enqueued_offset: String(last.offset),
      last_enqueued_time_utc: types.wrap_timestamp(last.enqueuedAt),
      runtime_info_retrieval_time_utc: types.wrap_timestamp(this.#now()),
    }
    return encodeDelivery(event.message, { annotations, deliveryAnnotations })
  }
}
