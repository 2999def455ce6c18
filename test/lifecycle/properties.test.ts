import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digest16 } from '../../src/lifecycle/digest.ts'
import { transitionId } from '../../src/events/ids.ts'
import { parseDocument } from '../../src/imds/document.ts'
import { diff } from '../../src/lifecycle/differ.ts'
import type { EventContent, Reading, RememberedState, Transition } from '../../src/lifecycle/model.ts'
import { emptyState, markApproved, rememberedStateSchema } from '../../src/lifecycle/remembered.ts'
import { statusName, terminalOutcome } from '../../src/lifecycle/status.ts'
import { hours } from './watcher.ts'

/** One look at the endpoint, in raw form: few ids and values, so that they meet again. */
interface Step {
  readonly incarnation: unknown
  readonly events: readonly Entry[]
  readonly afterMs: number
  readonly bootId: string | null
  readonly approve: string | null
}
type Entry = Readonly<Record<string, unknown>>

const oneOf = <Value>(...values: readonly Value[]): fc.Arbitrary<Value> => fc.constantFrom(...values)
const ids = ['A', 'b', 'C', '7', 'constructor', 'x'.repeat(50)] as const

const entry: fc.Arbitrary<Entry> = fc.record({
  EventId: oneOf(...ids),
  EventStatus: oneOf('Scheduled', 'Scheduled', 'Started', 'Started', 'Acknowledged', 'Completed', 'Canceled', 'Sched-uled'),
  EventType: oneOf('Freeze', 'Reboot'),
  Resources: fc.subarray(['web_0', 'web_1', 'Web_10']),
  NotBefore: oneOf<string | null>('', '2026-05-21T10:15:00Z', 'Thu, 21 May 2026 10:20:00 GMT', null),
  DurationInSeconds: oneOf(9, -1),
})

/** The same with parts that cannot be read, ids that are missing, and entries that are no events. */
const brokenEntry: fc.Arbitrary<Entry> = fc
  .tuple(
    entry,
    oneOf('EventId', 'EventStatus', 'EventType', 'Resources', 'NotBefore', 'DurationInSeconds'),
    oneOf<unknown>(true, {}, 'soon'),
  )
  .map(([good, field, value]) => ({ ...good, [field]: value }))

const stepOf = (entries: fc.Arbitrary<Entry[]>): fc.Arbitrary<Step> =>
  fc.record({
    incarnation: oneOf<unknown>(0, 1, 2, 3, 4, 5, 6, 'abc', undefined),
    events: entries,
    afterMs: oneOf(1000, 1000, 60_000, 600_000, -5000, 25 * hours),
    bootId: oneOf<string | null>('boot-1', 'boot-1', 'boot-2', null),
    approve: oneOf<string | null>(null, null, ...ids),
  })

const distinct = fc.uniqueArray(entry, { maxLength: 4, selector: (one) => String(one['EventId']) })
const orderly = fc.array(stepOf(distinct), { maxLength: 12 })
const unruly = fc.array(stepOf(fc.array(fc.oneof({ weight: 3, arbitrary: entry }, brokenEntry), { maxLength: 5 })), { maxLength: 12 })

interface Played {
  readonly state: RememberedState
  readonly transitions: readonly Transition[]
  readonly reading: Reading
}

/** Plays the steps from `remembered`; between them the state may go through `keep`, as it does through a restart. */
function play(steps: readonly Step[], keep: (state: RememberedState) => RememberedState = (state) => state): Played[] {
  const played: Played[] = []
  let state = emptyState
  let at = Date.parse('2026-05-21T10:00:00Z')
  for (const step of steps) {
    at += step.afterMs
    const parsed = parseDocument({ DocumentIncarnation: step.incarnation, Events: step.events })
    if (!parsed.ok) throw new Error(parsed.problem)
    const reading: Reading = { document: parsed.document, at, bootId: step.bootId, vmId: 'vm-1', vmName: 'web_0' }
    const result = diff(keep(state), reading)
    state = step.approve === null ? result.state : markApproved(result.state, step.approve)
    played.push({ state: result.state, transitions: result.transitions, reading })
  }
  return played
}

const throughJson = (state: RememberedState): RememberedState => rememberedStateSchema.parse(JSON.parse(JSON.stringify(state)))
const idsOf = (played: readonly Played[], vmId: string | null = null): string[] =>
  played.flatMap(({ transitions }) => transitions.map((transition) => transitionId(transition, vmId)))

const contentOf = (event: EventContent): EventContent => {
  const { durationInSeconds, eventSource, eventStatus, eventType, notBefore, resources } = event
  return { durationInSeconds, eventSource, eventStatus, eventType, notBefore, resources }
}

type Folded = Map<string, EventContent>
const sorted = (folded: Folded): [string, EventContent][] => [...folded].toSorted(([a], [b]) => (a < b ? -1 : 1))

/** What a consumer knows after these transitions. An end of what it never heard of changes nothing. */
function fold(folded: Folded, transitions: readonly Transition[]): Folded {
  for (const transition of transitions) {
    if (transition.kind === 'end') folded.delete(transition.key)
    else folded.set(transition.key, contentOf(transition.event))
  }
  return folded
}

describe('folding the transitions of any sequence', () => {
  it('gives back the last document that was accepted whole', () => {
    fc.assert(
      fc.property(orderly, (steps) => {
        const folded: Folded = new Map()
        for (const { state, transitions, reading } of play(steps)) {
          fold(folded, transitions)
          if (state.lowerReading) continue
          const standing = reading.document.events.filter((event) => terminalOutcome(event.eventStatus) === null)
          expect(sorted(folded)).toEqual(sorted(new Map(standing.map((event) => [event.eventId.toLowerCase(), contentOf(event)]))))
        }
      }),
    )
  })

  it('gives back what is remembered, whatever the document holds: broken entries, duplicates, lower readings', () => {
    fc.assert(
      fc.property(unruly, (steps) => {
        const folded: Folded = new Map()
        for (const { state, transitions } of play(steps)) {
          fold(folded, transitions)
          expect(sorted(folded)).toEqual(sorted(new Map(Object.entries(state.live).map(([key, { event }]) => [key, contentOf(event)]))))
        }
      }),
    )
  })

  it('never ends what was not told, but for a terminal status', () => {
    fc.assert(
      fc.property(unruly, (steps) => {
        const told = new Set<string>()
        const unheard: string[] = []
        for (const transition of play(steps).flatMap(({ transitions }) => transitions)) {
          if (transition.kind === 'state') told.add(transition.key)
          else if (!told.delete(transition.key)) unheard.push(transition.evidence.rule)
        }
        expect(unheard.filter((rule) => rule !== 'status')).toEqual([])
      }),
    )
  })
})

describe('ids', () => {
  it('are the same whatever the order of entries and resources, the case of ids, and the restarts in between', () => {
    fc.assert(
      fc.property(unruly, (steps) => {
        const otherwise = steps.map((step) => ({
          ...step,
          events: step.events.toReversed().map((event) => ({
            ...event,
            ...(typeof event['EventId'] === 'string' ? { EventId: swapCase(event['EventId']) } : {}),
            ...(Array.isArray(event['Resources']) ? { Resources: event['Resources'].toReversed() } : {}),
          })),
        }))
        expect(idsOf(play(otherwise, throughJson)).toSorted()).toEqual(idsOf(play(steps)).toSorted())
      }),
    )
  })

  it('of a state are the same for whoever sees it first after the state file was lost', () => {
    fc.assert(
      fc.property(distinct, orderly, (events, before) => {
        const last: Step = { incarnation: 9, events, afterMs: 1000, bootId: 'boot-1', approve: null }
        const fresh = play([last]).flatMap(({ transitions }) =>
          transitions.flatMap((told) => (told.kind === 'state' ? stateOf(told.key, told.event) : [])),
        )
        const seasoned = play([...before, last]).at(-1)?.state.live ?? {}
        const standing = Object.entries(seasoned).map(([key, { event }]) => stateOf(key, event))
        expect(standing.toSorted()).toEqual(fresh.toSorted())
      }),
    )
  })

  it('never come twice, so none stands for two different contents', () => {
    fc.assert(
      fc.property(unruly, (steps) => {
        const told = idsOf(play(steps), '02aab8a4-74ef-476e-8182-f6d2ba4166a6')
        expect(told.filter((id) => id.length > 128)).toEqual([])
        expect(new Set(told).size).toBe(told.length)
      }),
    )
  })
})

/** All that the id of a state is made of, but for generation and repeat, which are 1 for whoever has no memory. */
const stateOf = (key: string, event: EventContent): string => `${key}:${statusName(event.eventStatus)}:${digest16(event)}`
const swapCase = (id: string): string => (id === id.toLowerCase() ? id.toUpperCase() : id.toLowerCase())

describe('arbitrary JSON', () => {
  const likeAnEntry = fc.record(
    {
      EventId: fc.oneof(fc.jsonValue(), fc.string()),
      EventStatus: fc.oneof(fc.jsonValue(), fc.string()),
      EventType: fc.oneof(fc.jsonValue(), fc.string()),
      Resources: fc.oneof(fc.jsonValue(), fc.array(fc.string())),
      NotBefore: fc.oneof(
        fc.jsonValue(),
        fc.string(),
        fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
      ),
      EventSource: fc.jsonValue(),
      Description: fc.jsonValue(),
      DurationInSeconds: fc.jsonValue(),
      ResourceType: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  const body = fc.oneof(
    fc.jsonValue(),
    fc.record({ DocumentIncarnation: fc.jsonValue(), Events: fc.array(fc.oneof(fc.jsonValue(), likeAnEntry, entry)) }),
  )

  it('never makes anything throw, and what is remembered of it survives storing', () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 6 }), (bodies) => {
        let state = emptyState
        for (const [index, one] of bodies.entries()) {
          const parsed = parseDocument(JSON.parse(JSON.stringify(one)))
          if (!parsed.ok) continue
          state = diff(state, { document: parsed.document, at: index * 1000, bootId: null, vmId: null, vmName: 'web_0' }).state
          expect(throughJson(state)).toEqual(state)
        }
      }),
    )
  })
})

describe('the remembered state', () => {
  it('stays small, however long an endless stream of new, changing and broken events lasts', () => {
    let state = emptyState
    const sizes: number[] = []
    for (let poll = 0; poll < 300; poll += 1) {
      const parsed = parseDocument({
        DocumentIncarnation: poll,
        Events: [
          { EventId: 'same', EventStatus: poll % 3 === 0 ? 'Started' : 'Scheduled', EventType: 'Freeze', DurationInSeconds: poll },
          ...Array.from({ length: 10 }, (_, n) => ({ EventId: `${poll}-${n}`, EventStatus: 'Scheduled', EventType: 'Freeze' })),
          { broken: poll },
        ],
      })
      if (!parsed.ok) throw new Error(parsed.problem)
      state = diff(state, { document: parsed.document, at: poll * 1000, bootId: null, vmId: null, vmName: 'web_0' }).state
      sizes.push(JSON.stringify(state).length)
    }
    expect(Object.keys(state.live)).toHaveLength(11)
    expect(Object.keys(state.ended)).toHaveLength(1000)
    expect(sizes.at(-1)).toBeLessThan(200_000)
  })
})
