import type { Message } from 'rhea'
import type { AcceptedMessage } from './message.ts'

/** One message as it was accepted: decoded, and as it stood on the wire. */
export interface ReceivedMessage {
  readonly message: Message
  /** The encoded message; for a batch, the part of this one. */
  readonly raw: Buffer
  /** Message format of the transfer: 0, or 0x80013700 for a batch. */
  readonly format: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Per entity; older ones are forgotten. */
const keptMessages = 20_000
const keptBytes = 67_108_864

interface Entries {
  list: ReceivedMessage[]
  bytes: number
  /** All that there ever were. */
  count: number
}

/** What was accepted, for tests to look at. It sees messages as they came in, whatever became of them since. */
export class Journal {
  readonly #entities = new Map<string, Entries>()
  readonly #waiting = new Set<() => void>()

  add(entity: string, messages: readonly AcceptedMessage[], format: number, at: number): void {
    const key = entity.toLowerCase()
    const entries = this.#entities.get(key) ?? { list: [], bytes: 0, count: 0 }
    this.#entities.set(key, entries)
    for (const { decoded, raw } of messages) {
      entries.list.push({ message: decoded, raw, format, at })
      entries.bytes += raw.length
      entries.count += 1
    }
    // Cut by half, so that the cost of cutting is spread over many messages.
    while (entries.list.length > keptMessages || entries.bytes > keptBytes) {
      const cut = entries.list.splice(0, Math.ceil(entries.list.length / 2))
      entries.bytes -= cut.reduce((sum, entry) => sum + entry.raw.length, 0)
    }
    for (const wake of this.#waiting) wake()
  }

  received(entity: string): readonly ReceivedMessage[] {
    return [...(this.#entities.get(entity.toLowerCase())?.list ?? [])]
  }

  /** Resolves once `count` messages were accepted for the entity; rejects when `signal` aborts. */
  async waitFor(entity: string, count: number, signal: AbortSignal): Promise<readonly ReceivedMessage[]> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const check = (): void => {
      if ((this.#entities.get(entity.toLowerCase())?.count ?? 0) >= count) resolve()
    }
    const abort = (): void => {
      reject(signal.reason)
    }
    this.#waiting.add(check)
    signal.addEventListener('abort', abort, { once: true })
    try {
      if (signal.aborted) abort()
      check()
      await promise
      return this.received(entity)
    } finally {
      this.#waiting.delete(check)
      signal.removeEventListener('abort', abort)
    }
  }
}
