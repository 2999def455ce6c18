import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Sink } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import { outgoing } from '../../outbox/outbox-events.ts'
import { dispatch, openOutbox } from '../../outbox/outbox-fixture.ts'
import { openSink } from '../../support/sink-conformance.ts'
import { optionsFor, startNamespace } from './namespace.ts'

const cases = [
  { definition: eventHubs, entity: 'hub' },
  { definition: serviceBus, entity: 'queue' },
] as const

let broker: Broker
beforeEach(async () => {
  broker = await startNamespace()
})
afterEach(() => broker.close())

async function open(definition: (typeof cases)[number]['definition'], entity: 'hub' | 'queue' | 'topic'): Promise<Sink> {
  const sink = await openSink(definition, optionsFor(broker, entity))
  onTestFinished(() => sink.close())
  return sink
}

/** Ids as they arrived, each where it came first. */
const firstArrivals = (entity: string): string[] => [...new Set(broker.received(entity).map(({ message }) => String(message.message_id)))]

const lanes = ['a', 'b', 'c', 'd', 'e']
/** Events `from` up to `to` of every lane, in turn. */
const stream = (from: number, to: number): ReturnType<typeof outgoing>[] =>
  Array.from({ length: to - from }, (_, index) => from + index).flatMap((number) =>
    lanes.map((lane) => outgoing(`${lane}:${number}`, { lane })),
  )

function expectWhole(entity: string, count: number): void {
  const arrived = firstArrivals(entity)
  for (const lane of lanes) {
    const expected = Array.from({ length: count }, (_, number) => `${lane}:${number}`)
    expect(arrived.filter((id) => id.startsWith(`${lane}:`))).toEqual(expected)
  }
}

const patiently = { timeout: 30_000, interval: 20 }

describe.each(cases)('an outbox before $definition.type', ({ definition, entity }) => {
  it('keeps the order of each event through a restart of the broker in the middle of the stream', async () => {
    const outbox = openOutbox()
    outbox.store.commit({ events: stream(0, 60) })
    const dispatcher = dispatch(outbox, { sink: await open(definition, entity) })
    dispatcher.start()
    await broker.waitForMessages(entity, 100, { signal: AbortSignal.timeout(10_000) })
    await broker.restart()
    await vi.waitFor(() => expect(outbox.store.summarize()).toEqual([]), patiently)
    expectWhole(entity, 60)
    expect(dispatcher.settled.filter(({ outcome }) => outcome.status === 'rejected')).toEqual([])
  })

  it('loses nothing and keeps the order while the broker dies and comes back ten times under load', { timeout: 60_000 }, async () => {
    const outbox = openOutbox()
    const dispatcher = dispatch(outbox, { sink: await open(definition, entity) })
    dispatcher.start()
    for (let round = 0; round < 10; round += 1) {
      const before = broker.received(entity).length
      outbox.store.commit({ events: stream(round * 20, round * 20 + 20) })
      dispatcher.wake()
      await broker.waitForMessages(entity, before + 10, { signal: AbortSignal.timeout(20_000) })
      await broker.stop()
      await broker.start()
    }
    await vi.waitFor(() => expect(outbox.store.summarize()).toEqual([]), patiently)
    expectWhole(entity, 200)
  })
})

describe('a hundred forwarders that say the same', () => {
  it('leave one copy of each event behind a topic with duplicate detection', { timeout: 60_000 }, async () => {
    const events = ['1', '2', '3'].map((number) => outgoing(`C7061BAC:scheduled:${number}`, { lane: 'C7061BAC' }))
    const all = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const outbox = openOutbox()
        outbox.store.commit({ events })
        return dispatch(outbox, { sink: await open(serviceBus, 'topic') })
      }),
    )
    const drained = await Promise.all(all.map((dispatcher) => dispatcher.drain({ signal: AbortSignal.timeout(30_000) })))
    expect(drained).toEqual(all.map(() => true))
    expect(all.flatMap(({ settled }) => settled.filter(({ outcome }) => outcome.status === 'delivered'))).toHaveLength(300)
    expect(broker.count('topic/Subscriptions/all')).toBe(3)
  })
})
