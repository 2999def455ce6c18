import type { AcceptedMessage } from './message.ts'
import type { AmqpProblem } from './rhea-internals.ts'

/** Something that messages can be sent to: a queue, a topic, an event hub or one of its partitions. */
export interface SendTarget {
  /** Name of the entity, for faults and the journal. */
  readonly entity: string
  readonly maxMessageBytes: number
  /** Takes all of them or none; the problem where none. `partitionKey` is that of the envelope. */
  accept(messages: readonly AcceptedMessage[], partitionKey: string | null): AmqpProblem | null
}
