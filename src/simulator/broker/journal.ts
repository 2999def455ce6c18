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
const kept = 20_000

/** What was accepted, for tests to look at. It sees messages as they came in, whatever became of them since. */
export class Journal {
  readonly #entries = new Map<string, ReceivedMessage[]>()
  readonly #waiting = new Set<() => void>()

  add(entity: string, messages: readonly AcceptedMessage[], format: number, at: number): void {
    const key = entity.toLowerCase()
    const entries = this.#entries.get(key) ?? []
    for (const { decoded, raw } of messages) entries.push({ message: decoded, raw, format, at })
    if (entries.length > kept * 2) entries.splice(0, entries.length - kept)
    this.#entries.set(key, entries)
    for (const wake of this.#waiting) wake()
  }

  received(entity: string): readonly ReceivedMessage[] {
    return this.#entries.get(entity.toLowerCase())?.slice(-kept) ?? []
  }

  /** Resolves once `count` messages were accepted for the entity; rejects when `signal` aborts. */
  async waitFor(entity: string, count: number, signal: AbortSignal): Promise<readonly ReceivedMessage[]> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const check = (): void => {
      if ((this.#entries.get(entity.toLowerCase())?.length ?? 0) >= count) resolve()
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
