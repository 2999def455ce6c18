import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { DeliveryOutcome, Sink, SinkContext, SinkDefinition } from '../../sinks/contract.ts'
import { eventFormat } from '../../sinks/formats/event-format.ts'
import { arrivedFromJson, type Arrived } from './arrived.ts'
import { largeEvent, sampleEvent } from './sample-event.ts'

/** Why the other side of a sink cannot be made to do something. It becomes a part of the name of every test of that sink. */
interface Lack {
  readonly lacks: string
}

/** A way in which the other side fails, and how it recovers. */
interface Failure<Other> {
  readonly cause: (other: Other) => void | Promise<void>
  readonly heal: ((other: Other) => void | Promise<void>) | Lack
}

export interface SinkHarness<Other> {
  readonly definition: SinkDefinition
  /** What sets this run apart where one sink has several, such as a mode. */
  readonly variant?: string
  /** Starts the other side: a server, a folder. */
  readonly start: () => Promise<Other>
  /** Takes it down and away. Called after each test, whatever state it is in. */
  readonly stop: (other: Other) => Promise<void>
  /** The options as a configuration would have them. */
  readonly options: (other: Other) => Record<string, unknown>
  /** What the other side holds, in any order. */
  readonly arrived: (other: Other) => Arrived[] | Promise<Arrived[]>
  /** Cannot be reached: `retry`, `transient`. */
  readonly down: Failure<Other> | Lack
  /** Asks to be left alone for two seconds: `retry`, `throttled`. */
  readonly throttled: Failure<Other> | Lack
  /** Will not take it, and says so: `refusal`. */
  readonly refused: (Failure<Other> & { readonly refusal: 'rejected' | 'refused' }) | Lack
  /** Takes the event and never answers. `reached` resolves once a delivery waits for the answer. */
  readonly hanging: (Failure<Other> & { readonly reached: (other: Other) => Promise<unknown> }) | Lack
  /** What makes `check` say no. */
  readonly checkFails: (other: Other) => void | Promise<void>
}

/** What a sink is given in tests. */
export const testContext: SinkContext = {
  name: 'under-test',
  log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  now: () => Date.now(),
  agent: 'foreshock/test',
  maxAgeSeconds: 86_400,
  format: eventFormat('cloudevents', () => null),
  env: {},
}

/** A signal that does not abort. */
export const unhurried = (): { signal: AbortSignal } => ({ signal: new AbortController().signal })

/** Long for a machine that is busy, and far below the time limit of a delivery. */
const quicklyMs = 5_000

/**
 * The contract of `sinks/contract.ts` as tests, the same for every sink. An ability that the other side lacks is declared with its reason.
 */
export function describeSinkConformance<Other>(harness: SinkHarness<Other>): void {
  const title = harness.variant === undefined ? harness.definition.type : `${harness.definition.type}, ${harness.variant}`
  describe(`conformance of the sink ${title}${lackingText(harness)}`, () => {
    let other: Other
    let sink: Sink

    beforeEach(async () => {
      other = await harness.start()
      sink = await openSink(harness.definition, harness.options(other))
    })
    afterEach(async () => {
      await sink.close()
      await harness.stop(other)
    })

    const deliver = (number: number): Promise<DeliveryOutcome> => sink.deliver(sampleEvent(number), unhurried())
    const recovers = async (failure: Failure<Other>): Promise<void> => {
      if ('lacks' in failure.heal) return
      await failure.heal(other)
      await vi.waitFor(async () => expect(await deliver(2)).toEqual({ status: 'delivered' }), { timeout: quicklyMs })
      expect(await harness.arrived(other)).toContainEqual(arrivedFromJson(sampleEvent(2)))
    }

    it('brings an event over unchanged: every attribute type, unicode, quotes, percent signs', async () => {
      expect(await deliver(1)).toEqual({ status: 'delivered' })
      expect(await harness.arrived(other)).toEqual([arrivedFromJson(sampleEvent(1))])
    })

    it('brings 60 KiB of data over unchanged', async () => {
      expect(await sink.deliver(largeEvent(1), unhurried())).toEqual({ status: 'delivered' })
      expect(await harness.arrived(other)).toEqual([arrivedFromJson(largeEvent(1))])
    })

    it('makes every copy of an event the same', async () => {
      await deliver(1)
      await deliver(1)
      const copies = await harness.arrived(other)
      expect(copies.length).toBeGreaterThanOrEqual(1)
      for (const copy of copies) expect(copy).toEqual(arrivedFromJson(sampleEvent(1)))
    })

    it('delivers 16 events at once', async () => {
      const numbers = Array.from({ length: 16 }, (_, index) => index)
      const outcomes = await Promise.all(numbers.map((number) => deliver(number)))
      expect(outcomes).toEqual(numbers.map(() => ({ status: 'delivered' })))
      const ids = (await harness.arrived(other)).map((event) => event.attributes['id'])
      expect(ids).toHaveLength(16)
      expect(new Set(ids)).toEqual(new Set(numbers.map((number) => sampleEvent(number).id)))
    })

    it('does not start when the signal has aborted before', async () => {
      const outcome = await within(sink.deliver(sampleEvent(1), { signal: AbortSignal.abort() }))
      expect(outcome).toMatchObject({ status: 'retry', because: 'transient' })
      await deliver(2)
      expect(await harness.arrived(other)).toEqual([arrivedFromJson(sampleEvent(2))])
    })

    it('checks without leaving anything behind', async () => {
      expect(await sink.check(unhurried())).toEqual({ ok: true, detail: expect.stringMatching(/./) })
      expect(await harness.arrived(other)).toEqual([])
    })

    it('tells what is wrong and its cure when the check fails', async () => {
      await harness.checkFails(other)
      const result = await within(sink.check(unhurried()))
      expect(result).toEqual({ ok: false, detail: expect.stringMatching(/./), cure: expect.stringMatching(/./) })
    })

    it('closes more than once and leaves nothing open', async () => {
      // Whatever the first one connects in the background, it has by now.
      await deliver(1)
      const before = openResources()
      const second = await openSink(harness.definition, harness.options(other))
      expect(await second.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
      await second.close()
      await second.close()
      // The other side is still up: what closes now was closed by the sink.
      await vi.waitFor(() => expect(openResources()).toBeLessThanOrEqual(before), { timeout: quicklyMs })
    })

    const { down, throttled, refused, hanging } = harness
    for (const failure of able(down)) {
      it('says retry, transient, while the other side is down, and recovers', async () => {
        await failure.cause(other)
        expect(await within(deliver(1))).toMatchObject(retry('transient'))
        await recovers(failure)
      })
    }
    for (const failure of able(throttled)) {
      it('says retry, throttled, with the wait that was asked for, and recovers', async () => {
        await failure.cause(other)
        expect(await within(deliver(1))).toMatchObject({ ...retry('throttled'), retryAfterMs: 2_000 })
        await recovers(failure)
      })
    }
    for (const failure of able(refused)) {
      it(`says ${failure.refusal} when the other side refuses, and goes on afterwards`, async () => {
        await failure.cause(other)
        const expected = { status: 'rejected', code: expect.stringMatching(/^[a-z0-9_]+$/), detail: expect.stringMatching(/^.+$/) }
        expect(await within(deliver(1))).toMatchObject(failure.refusal === 'rejected' ? expected : retry('refused'))
        await recovers(failure)
      })
    }
    for (const failure of able(hanging)) {
      it('lets go quickly when the signal aborts while the other side hangs, and recovers', async () => {
        await failure.cause(other)
        const time = new AbortController()
        const reached = failure.reached(other)
        const delivering = sink.deliver(sampleEvent(1), { signal: time.signal })
        await reached
        time.abort(new DOMException('the time limit', 'TimeoutError'))
        expect(await within(delivering)).toMatchObject({ ...retry('transient'), code: 'timeout' })
        await recovers(failure)
      })
    }
  })

  describe(`options of the sink ${title}`, () => {
    it('are described, each of them', () => {
      expect(undescribed(z.toJSONSchema(harness.definition.options, { io: 'input', unrepresentable: 'any' }))).toEqual([])
    })

    it('refuse an unknown key', async () => {
      const other = await harness.start()
      const known = harness.options(other)
      await harness.stop(other)
      expect(harness.definition.options.safeParse(known).success).toBe(true)
      expect(harness.definition.options.safeParse({ ...known, surprise: 1 }).success).toBe(false)
    })
  })
}

/** Parses the options as the configuration does, and opens. */
export async function openSink(definition: SinkDefinition, options: Record<string, unknown>): Promise<Sink> {
  return definition.open(definition.options.parse(options), testContext)
}

function lackingText<Other>({ down, throttled, refused, hanging }: SinkHarness<Other>): string {
  const abilities = Object.entries({ down, throttled, refused, hanging })
  const lacking = abilities.flatMap(([name, ability]) => ('lacks' in ability ? [`${name}: ${ability.lacks}`] : []))
  return lacking.length === 0 ? '' : ` (not tested: ${lacking.join('; ')})`
}

/** None or one, so that what cannot be made to happen has no test. */
function able<F extends object>(ability: F | Lack): F[] {
  return 'lacks' in ability ? [] : [ability]
}

const retry = (because: 'transient' | 'throttled' | 'refused'): object => ({
  status: 'retry',
  because,
  code: expect.stringMatching(/^[a-z0-9_]+$/),
  detail: expect.stringMatching(/^.+$/),
})

async function within<T>(work: Promise<T>): Promise<T> {
  const started = performance.now()
  const result = await work
  expect(performance.now() - started).toBeLessThan(quicklyMs)
  return result
}

/** Sockets, servers, pipes and child processes. */
function openResources(): number {
  return process.getActiveResourcesInfo().filter((resource) => /^(?:TCP|Pipe|Process)/.test(resource)).length
}

const schemaPart = z.looseObject({
  properties: z.record(z.string(), z.unknown()).default({}),
  anyOf: z.array(z.unknown()).default([]),
  oneOf: z.array(z.unknown()).default([]),
  additionalProperties: z.unknown().optional(),
})

/** Paths of the properties that have no description, at any depth. */
function undescribed(schema: unknown, path = ''): string[] {
  if (typeof schema !== 'object') return []
  const { properties, anyOf, oneOf, additionalProperties } = schemaPart.parse(schema)
  const here = Object.entries(properties).flatMap(([name, property]) => {
    const described = typeof property === 'object' && property !== null && 'description' in property
    return [...(described ? [] : [`${path}${name}`]), ...undescribed(property, `${path}${name}.`)]
  })
  return [...here, ...[...anyOf, ...oneOf].flatMap((part) => undescribed(part, path)), ...undescribed(additionalProperties, path)]
}
