import { audiencePath } from './address.ts'
import { covers, type Right } from './token.ts'

const longestTimer = 2_147_483_647

/** What the tokens put on one connection allow, and until when. */
export class Claims {
  readonly #now: () => number
  readonly #onExpiry: () => void
  readonly #granted = new Map<string, { readonly expiresAt: number; readonly rights: readonly Right[] }>()
  #timer: NodeJS.Timeout | undefined

  /** `onExpiry` is called after claims ended, so that links that lived by them can be looked at. */
  constructor(now: () => number, onExpiry: () => void) {
    this.#now = now
    this.#onExpiry = onExpiry
  }

  put(audience: string, expiresAt: number, rights: readonly Right[]): void {
    this.#granted.set(audiencePath(audience), { expiresAt, rights })
    this.#arm()
  }

  /** `path` lower-cased; `right` null where any will do. */
  allow(path: string, right: Right | null): boolean {
    const now = this.#now()
    for (const [granted, { expiresAt, rights }] of this.#granted) {
      if (expiresAt > now && covers(granted, path) && (right === null || rights.includes(right))) return true
    }
    return false
  }

  /** Whether some claim is for the entity, for what is below it, or for what is above it. */
  touch(entity: string): boolean {
    const now = this.#now()
    return [...this.#granted].some(([granted, { expiresAt }]) => expiresAt > now && (covers(granted, entity) || covers(entity, granted)))
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const next = Math.min(...[...this.#granted.values()].map((claim) => claim.expiresAt))
    if (!Number.isFinite(next)) return
    this.#timer = setTimeout(() => this.#expire(), Math.min(Math.max(0, next - this.#now()), longestTimer)).unref()
  }

  #expire(): void {
    const now = this.#now()
    let ended = false
    for (const [path, { expiresAt }] of this.#granted) {
      if (expiresAt > now) continue
      this.#granted.delete(path)
      ended = true
    }
    if (ended) this.#onExpiry()
    this.#arm()
  }
}
