/** At most so many ids are remembered, whatever the window, so that memory stays bounded. */
const maxIds = 100_000

/** The message ids of the last `windowMs`, for duplicate detection. A repeat does not lengthen the life of its id. */
export class DuplicateHistory {
  readonly #windowMs: number
  readonly #seenAt = new Map<string, number>()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Whether `id` was seen within the window. Does not record it. */
  has(id: string, now: number): boolean {
    const seenAt = this.#seenAt.get(id)
    return seenAt !== undefined && seenAt + this.#windowMs > now
  }

  add(id: string, now: number): void {
    this.#seenAt.delete(id)
    this.#seenAt.set(id, now)
    // A Map iterates in order of insertion, so the oldest come first.
    for (const [old, seenAt] of this.#seenAt) {
      if (seenAt + this.#windowMs > now && this.#seenAt.size <= maxIds) break
      this.#seenAt.delete(old)
    }
  }
}
