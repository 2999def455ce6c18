type Listener = (this: SendSignal, event: unknown) => unknown

/**
 * What the Azure SDKs use of an AbortSignal (their `AbortSignalLike`), and the way to abort it. Every send has one of its own, and an
 * AbortController costs more than all else that a line keeps of a send.
 */
export class SendSignal {
  aborted = false
  reason: unknown
  readonly #listeners = new Set<Listener>()

  addEventListener(_type: 'abort', listener: Listener): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /** Once: later calls change nothing. */
  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of this.#listeners) listener.call(this, undefined)
  }
}
