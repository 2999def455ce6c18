import type { AcceptedMessage } from './message.ts'

export interface LoggedEvent {
  readonly sequenceNumber: number
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly enqueuedAt: number
  readonly partitionKey: string | null
  readonly message: AcceptedMessage
}

/** Where a reader starts, as its selector filter says. */
export type StartPosition =
  | { readonly by: 'latest' }
  | { readonly by: 'offset' | 'sequenceNumber' | 'enqueuedTime'; readonly value: number; readonly inclusive: boolean }

/** One partition of an event hub: an append-only log that keeps its newest events, up to a number and a size. Pure. */
export class EventLog {
  readonly #maxEvents: number
  readonly #maxBytes: number
  #bytes = 0
  #events: LoggedEvent[] = []
  /** Index of the oldest event that is still kept; dropped ones are cut off now and then, not one by one. */
  #head = 0
  #nextOffset = 0
  #nextSequenceNumber = 0

  constructor(maxEvents: number, maxBytes: number) {
    this.#maxEvents = maxEvents
    this.#maxBytes = maxBytes
  }

  get beginSequenceNumber(): number {
    return this.#nextSequenceNumber - (this.#events.length - this.#head)
  }

  get nextSequenceNumber(): number {
    return this.#nextSequenceNumber
  }

  get last(): LoggedEvent | undefined {
    return this.#events.at(-1)
  }

  append(message: AcceptedMessage, partitionKey: string | null, now: number): LoggedEvent {
    const event = { sequenceNumber: this.#nextSequenceNumber++, offset: this.#nextOffset, enqueuedAt: now, partitionKey, message }
    // Offsets grow by the size of what is stored, as they do in Azure: consecutive numbers would hide wrong arithmetic in a consumer.
    this.#nextOffset += message.raw.length + 64
    this.#events.push(event)
    this.#bytes += message.raw.length
    while (this.#events.length - this.#head > this.#maxEvents || this.#bytes > this.#maxBytes) {
      const oldest = this.#events[this.#head]
      if (oldest === undefined || oldest === event) break
      this.#bytes -= oldest.message.raw.length
      this.#head += 1
    }
    if (this.#head > 1024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head)
      this.#head = 0
    }
    return event
  }

  /** The event with this number, or the oldest kept one where it is gone; undefined at the end. */
  read(sequenceNumber: number): LoggedEvent | undefined {
    return this.#events[this.#head + Math.max(0, sequenceNumber - this.beginSequenceNumber)]
  }

  /** Sequence number of the first event that a reader with this start is to get. */
  resolve(start: StartPosition): number {
    if (start.by === 'latest') return this.#nextSequenceNumber
    const value = (event: LoggedEvent): number => {
      if (start.by === 'offset') return event.offset
      return start.by === 'sequenceNumber' ? event.sequenceNumber : event.enqueuedAt
    }
    for (let at = this.#head; at < this.#events.length; at += 1) {
      const event = this.#events[at]
      if (event !== undefined && (start.inclusive ? value(event) >= start.value : value(event) > start.value)) return event.sequenceNumber
    }
    return this.#nextSequenceNumber
  }
}

const selector = /^\s*amqp\.annotation\.(x-opt-offset|x-opt-sequence-number|x-opt-enqueued-time)\s*(>=?)\s*'([^']*)'\s*$/

const fields = { 'x-opt-offset': 'offset', 'x-opt-sequence-number': 'sequenceNumber', 'x-opt-enqueued-time': 'enqueuedTime' } as const

/** Reads the text of a selector filter; null where it is none of the forms that consumers send. */
export function parseSelector(text: string): StartPosition | null {
  const match = selector.exec(text)
  const [, field, operator, value] = match ?? []
  if (value === undefined || !isField(field)) return null
  if (field === 'x-opt-offset' && value === '@latest') return { by: 'latest' }
  const number = Number(value)
  return value.trim() !== '' && Number.isFinite(number) ? { by: fields[field], value: number, inclusive: operator === '>=' } : null
}

function isField(name: string | undefined): name is keyof typeof fields {
  return name !== undefined && Object.hasOwn(fields, name)
}
