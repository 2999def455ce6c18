import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sink } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { openSink, unhurried } from '../../support/sink-conformance.ts'
import { arrivedAt, optionsFor, startNamespace } from './namespace.ts'

const cases = [
  { definition: eventHubs, entity: 'hub' },
  { definition: serviceBus, entity: 'topic' },
] as const

const delivered = { status: 'delivered' }
const soon = { timeout: 5_000, interval: 10 }

/** Those that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

describe.each(cases)('the link of $definition.type', ({ definition, entity }) => {
  let broker: Broker
  let sink: Sink

  beforeEach(async () => {
    broker = await startNamespace()
    sink = await openSink(definition, optionsFor(broker, entity))
  })
  afterEach(async () => {
    await sink.close()
    await broker.faults.clear()
    await broker.close()
  })

  const deliver = (number: number, signal = unhurried().signal): ReturnType<Sink['deliver']> =>
    sink.deliver(sampleEvent(number), { signal })
  const whenAttached = (): Promise<void> => vi.waitFor(() => expect(broker.links).toBe(linksOfOne), soon)
  /** $cbs to and fro, and the sender. */
  const linksOfOne = 3

  it('is opened without an event, and is the same for all of them', async () => {
    await whenAttached()
    for (let number = 0; number < 5; number += 1) expect(await deliver(number)).toEqual(delivered)
    expect(broker.connections).toBe(1)
    expect(broker.links).toBe(linksOfOne)
  })

  it('comes back by itself after a restart of the broker', async () => {
    await whenAttached()
    await broker.stop()
    await vi.waitFor(() => expect(broker.connections).toBe(0), soon)
    await broker.start()
    await whenAttached()
    expect(await deliver(1)).toEqual(delivered)
  })

  it('comes back by itself after it was detached, as Azure does with idle ones', async () => {
    await whenAttached()
    broker.faults.detachLinks(entity)
    await vi.waitFor(() => expect(broker.links).toBeLessThan(linksOfOne), soon)
    await whenAttached()
    expect(broker.connections).toBe(1)
  })

  it('costs the first event after an idle time nothing: the link that was detached meanwhile is another one already', async () => {
    await whenAttached()
    broker.faults.detachLinks(entity)
    await vi.waitFor(() => expect(broker.links).toBeLessThan(linksOfOne), soon)
    await whenAttached()
    // A connection that still had to be made would fail now.
    await broker.faults.refuseConnections()
    const begun = performance.now()
    expect(await deliver(1)).toEqual(delivered)
    expect(performance.now() - begun).toBeLessThan(500)
  })

  it('tells a send at once that its connection broke', async () => {
    await whenAttached()
    broker.faults.dropOnSend({ times: 1 })
    const begun = performance.now()
    expect(await deliver(1)).toMatchObject({ status: 'retry', because: 'transient', code: 'connection_lost' })
    expect(performance.now() - begun).toBeLessThan(1_000)
    expect(await deliver(1)).toEqual(delivered)
  })

  it('tells a send within seconds that its link was detached', async () => {
    await whenAttached()
    broker.faults.detachOnSend({ times: 1 })
    expect(await deliver(1)).toMatchObject({ status: 'retry', because: 'transient', code: 'connection_lost' })
    expect(await deliver(1)).toEqual(delivered)
  })

  it('is given up when a broker that stands still lets a send run out of time, and is another one afterwards', async () => {
    await whenAttached()
    broker.faults.freeze()
    expect(await deliver(1, AbortSignal.timeout(200))).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    expect(await deliver(1, AbortSignal.timeout(200))).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    broker.faults.thaw()
    await vi.waitFor(async () => expect(await deliver(1)).toEqual(delivered), soon)
  })

  it('stays when one send of many runs out of time', async () => {
    await whenAttached()
    broker.faults.ignoreSends({ times: 1 })
    const late = new AbortController()
    const hanging = deliver(1, late.signal)
    expect(await deliver(2)).toEqual(delivered)
    late.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await hanging).toMatchObject({ code: 'timeout' })
    expect(broker.links).toBe(linksOfOne)
  })

  it('does not send what was given up while the link was being opened', async () => {
    await whenAttached()
    await broker.stop()
    await vi.waitFor(() => expect(broker.connections).toBe(0), soon)
    broker.faults.freeze()
    await broker.start()
    expect(await deliver(1, AbortSignal.timeout(100))).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    broker.faults.thaw()
    await vi.waitFor(async () => expect(await deliver(2)).toEqual(delivered), soon)
    expect(arrivedAt(broker, entity).map(({ attributes }) => attributes['id'])).toEqual([sampleEvent(2).id])
  })

  it('closes at once while the broker stands still, and leaves no timer', async () => {
    const before = timers()
    await whenAttached()
    broker.faults.freeze()
    const abort = new AbortController()
    const delivering = deliver(1, abort.signal)
    abort.abort()
    await delivering
    const begun = performance.now()
    await sink.close()
    expect(performance.now() - begun).toBeLessThan(1_000)
    await broker.close()
    expect(timers()).toBeLessThanOrEqual(before)
  })

  it('leaves no timer and no connection behind after a dozen losses', async () => {
    const before = timers()
    await whenAttached()
    for (let round = 0; round < 12; round += 1) {
      broker.faults.dropConnections()
      await vi.waitFor(async () => expect(await deliver(round)).toEqual(delivered), soon)
    }
    expect(broker.connections).toBe(1)
    await sink.close()
    await vi.waitFor(() => expect(broker.connections).toBe(0), soon)
    await broker.close()
    expect(timers()).toBeLessThanOrEqual(before)
  })

  it('opens with the broker down, and is there when the broker is', async () => {
    await sink.close()
    await broker.stop()
    sink = await openSink(definition, optionsFor(broker, entity))
    expect(await deliver(1)).toMatchObject({ status: 'retry', because: 'transient', code: 'network' })
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, detail: expect.stringContaining('ECONNREFUSED') })
    await broker.start()
    await whenAttached()
  })
})
