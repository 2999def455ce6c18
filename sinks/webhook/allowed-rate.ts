const windowMs = 60_000

/** How many requests may be made in any minute. */
export interface AllowedRate {
  /** A slot to be given back once the answer is there, or how long to wait for one. */
  take(perMinute: number): { readonly done: () => void } | { readonly waitMs: number }
}

/**
 * A slot is free again a minute after its request was *answered*: the other side counted it before it answered, so no minute of its clock
 * sees more than it allowed, however long requests take on the way.
 */
export function allowedRate(now: () => number): AllowedRate {
  const slots = new Set<{ freeAt: number }>()
  return {
    take(perMinute) {
      const at = now()
      for (const slot of slots) if (slot.freeAt <= at) slots.delete(slot)
      if (slots.size >= perMinute) {
        const soonest = Math.min(...[...slots].map(({ freeAt }) => freeAt))
        // All of them under way: one second is as good a guess as any. A clock that was set back must not make it longer than a minute.
        return { waitMs: Number.isFinite(soonest) ? Math.min(soonest - at, windowMs) : 1000 }
      }
      const slot = { freeAt: Number.POSITIVE_INFINITY }
      slots.add(slot)
      return { done: () => (slot.freeAt = now() + windowMs) }
    },
  }
}
