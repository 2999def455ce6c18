/** A binary min-heap of numbered entries; the smallest `rank` comes first, of equal ranks the smaller `number`. */
export class Heap {
  readonly #entries: { rank: number; number: number }[] = []

  get size(): number {
    return this.#entries.length
  }

  peek(): { rank: number; number: number } | undefined {
    return this.#entries[0]
  }

  push(rank: number, number: number): void {
    const entries = this.#entries
    const entry = { rank, number }
    let at = entries.length
    entries.push(entry)
    while (at > 0) {
      const parentAt = (at - 1) >> 1
      const parent = entries[parentAt]
      if (parent === undefined || !isBefore(entry, parent)) break
      entries[at] = parent
      at = parentAt
    }
    entries[at] = entry
  }

  pop(): { rank: number; number: number } | undefined {
    const entries = this.#entries
    const first = entries[0]
    const last = entries.pop()
    if (first === undefined || last === undefined || entries.length === 0) return first
    let at = 0
    for (;;) {
      const leftAt = at * 2 + 1
      const left = entries[leftAt]
      const right = entries[leftAt + 1]
      if (left === undefined) break
      const childAt = right !== undefined && isBefore(right, left) ? leftAt + 1 : leftAt
      const child = childAt === leftAt ? left : right
      if (child === undefined || !isBefore(child, last)) break
      entries[at] = child
      at = childAt
    }
    entries[at] = last
    return first
  }
}

function isBefore(a: { rank: number; number: number }, b: { rank: number; number: number }): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.number < b.number)
}
