/** At most `perSecond` requests of one machine within any second. */
export class RateLimit {
  readonly #perSecond: number
  readonly #spent = new Map<number, number[]>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** False: the budget is used up. A refused request costs nothing. */
  spend(vm: number, nowMs: number): boolean {
    if (this.#perSecond === Number.POSITIVE_INFINITY) return true
    const recent = (this.#spent.get(vm) ?? []).filter((at) => at > nowMs - 1000)
    const granted = recent.length < this.#perSecond
    this.#spent.set(vm, granted ? [...recent, nowMs] : recent)
    return granted
  }
}
