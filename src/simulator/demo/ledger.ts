import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import { tell } from './story.ts'

/** What the consumer of a sink got: distinct events, and copies beside them. */
export interface Received {
  readonly sink: string
  readonly ids: ReadonlySet<string>
  readonly copies: number
  /** Count of distinct events: scheduled events by their state, others by their family. */
  readonly kinds: Readonly<Record<string, number>>
}

interface Page {
  readonly ids: Set<string>
  readonly kinds: Map<string, number>
  copies: number
}

export interface Ledger {
  /** Notes a receipt; tells the story at the first one of an event, and who has it once everybody has. */
  got(sink: string, event: CloudEvent): void
  received(): readonly Received[]
  /** Every sink has every event that any of them has. */
  complete(): boolean
}

/** Who got what. `now` in milliseconds since the epoch. */
export function createLedger(sinks: readonly string[], say: (line: string) => void, now: () => number): Ledger {
  const pages = new Map<string, Page>(sinks.map((sink) => [sink, { ids: new Set(), kinds: new Map(), copies: 0 }]))
  const firsts = new Map<string, { at: number; got: string[] }>()

  return {
    got(sink, event) {
      const page = pages.get(sink)
      if (page === undefined) return
      if (page.ids.has(event.id)) {
        page.copies += 1
        return
      }
      page.ids.add(event.id)
      const kind = kindOf(event)
      page.kinds.set(kind, (page.kinds.get(kind) ?? 0) + 1)
      const first = firsts.get(event.id) ?? { at: now(), got: [] }
      if (first.got.length === 0) say(tell(event, now()))
      first.got.push(`${sink} +${now() - first.at} ms`)
      firsts.set(event.id, first)
      if (first.got.length === pages.size) say(`    all have it: ${first.got.join(', ')}`)
    },
    received: () => [...pages].map(([sink, { ids, copies, kinds }]) => ({ sink, ids, copies, kinds: Object.fromEntries(kinds) })),
    complete: () => [...firsts.values()].every(({ got }) => got.length === pages.size),
  }
}

function kindOf(event: CloudEvent): string {
  const [family = '', state = ''] = event.type.split('.').slice(-3)
  return family === 'scheduledevent' ? state : family
}
