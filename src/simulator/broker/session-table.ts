interface Session {
  lock: { owner: string; until: number; messages: Set<number> } | null
  state: Buffer | null
}

/**
 * Who holds which session until when, and the state that sessions carry. Pure: time comes in as an argument.
 * A session that nobody holds and that has no state is forgotten.
 */
export class SessionTable {
  readonly #lockMs: number
  readonly #sessions = new Map<string, Session>()

  constructor(lockMs: number) {
    this.#lockMs = lockMs
  }

  /** Until when the session is now locked; null where somebody else holds it. */
  accept(id: string, owner: string, now: number): number | null {
    const session = this.#sessions.get(id) ?? { lock: null, state: null }
    if (session.lock !== null) return null
    session.lock = { owner, until: now + this.#lockMs, messages: new Set() }
    this.#sessions.set(id, session)
    return session.lock.until
  }

  isHeld(id: string): boolean {
    return this.#sessions.get(id)?.lock != null
  }

  isHeldBy(id: string, owner: string): boolean {
    return this.#sessions.get(id)?.lock?.owner === owner
  }

  lockedUntil(id: string): number | null {
    return this.#sessions.get(id)?.lock?.until ?? null
  }

  renew(id: string, owner: string, now: number): number | null {
    const lock = this.#sessions.get(id)?.lock
    if (lock?.owner !== owner) return null
    lock.until = now + this.#lockMs
    return lock.until
  }

  /** Notes that a message of the session is locked, so that it comes free with the session. */
  hold(id: string, sequenceNumber: number): void {
    this.#sessions.get(id)?.lock?.messages.add(sequenceNumber)
  }

  letGo(id: string, sequenceNumber: number): void {
    this.#sessions.get(id)?.lock?.messages.delete(sequenceNumber)
  }

  /** Ends the lock and gives the messages that it held; null where `owner` does not hold it. */
  release(id: string, owner: string): readonly number[] | null {
    const session = this.#sessions.get(id)
    if (session?.lock?.owner !== owner) return null
    const messages = [...session.lock.messages]
    session.lock = null
    if (session.state === null) this.#sessions.delete(id)
    return messages
  }

  expired(now: number): { id: string; owner: string }[] {
    const found = []
    for (const [id, { lock }] of this.#sessions) if (lock !== null && lock.until <= now) found.push({ id, owner: lock.owner })
    return found
  }

  nextDue(): number | null {
    let due: number | null = null
    for (const { lock } of this.#sessions.values()) if (lock !== null && (due === null || lock.until < due)) due = lock.until
    return due
  }

  state(id: string): Buffer | null {
    return this.#sessions.get(id)?.state ?? null
  }

  setState(id: string, state: Buffer | null): void {
    const session = this.#sessions.get(id) ?? { lock: null, state: null }
    session.state = state
    if (state === null && session.lock === null) this.#sessions.delete(id)
    else this.#sessions.set(id, session)
  }

  /** Sessions with a state, sorted. */
  withState(): string[] {
    return [...this.#sessions]
      .filter(([, session]) => session.state !== null)
      .map(([id]) => id)
      .toSorted()
  }
}
