import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { delivered } from '../../sinks/contract.ts'
import { attachDatabase } from '../../src/outbox/database.ts'
import type { DispatcherOptions } from '../../src/outbox/dispatcher.ts'
import { createStore, type Store } from '../../src/outbox/store.ts'
import { outgoing, rejected, transient } from './outbox-events.ts'
import { dispatch, openOutbox, puppetSink } from './outbox-fixture.ts'

const soon = () => ({ signal: AbortSignal.timeout(10_000) })
const ids = (calls: readonly { readonly id: string }[]) => calls.map(({ id }) => id)

describe('order and concurrency', () => {
  it('hands an event to the sink in the tick of its commit', () => {
    const outbox = openOutbox()
    const sink = puppetSink(() => delivered)
    const dispatcher = dispatch(outbox, { sink })
    dispatcher.start()
    dispatcher.start()
    outbox.store.commit({ events: [outgoing('e')] })
    dispatcher.wake()
    expect(ids(sink.calls)).toEqual(['e'])
  })

  it('never has two of one lane in flight, nor more in all than the concurrency', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, concurrency: 3 })
    outbox.store.commit({ events: Array.from({ length: 10 }, (_, index) => outgoing(`${index}`, { lane: `lane ${index % 5}` })) })
    dispatcher.start()
    expect(sink.calls.map(({ lane }) => lane)).toEqual(['lane 0', 'lane 1', 'lane 2'])
    sink.calls[1]?.answer(delivered)
    await sink.called(4)
    expect(sink.calls[3]).toMatchObject({ id: '3' })
    for (let done = 0; done < 10; done += 1) {
      await sink.called(Math.min(10, done + 1))
      sink.calls[done]?.answer(delivered)
    }
    await dispatcher.whenSettled(10)
    expect(outbox.store.summarize()).toEqual([])
  })

  it('reaches a concurrency of any size, also past rows that are in flight already', () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    outbox.store.commit({ events: Array.from({ length: 200 }, (_, index) => outgoing(`${index}`)) })
    dispatch(outbox, { sink, concurrency: 150 }).start()
    expect(new Set(ids(sink.calls)).size).toBe(150)
    expect(sink.calls).toHaveLength(150)
  })

  it('lets the urgent jump the queue', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, concurrency: 1 })
    outbox.store.commit({ events: [outgoing('1'), outgoing('2'), outgoing('3')] })
    dispatcher.start()
    outbox.store.commit({ events: [outgoing('preempt', { priority: 1 })] })
    dispatcher.wake()
    sink.calls[0]?.answer(delivered)
    await sink.called(2)
    expect(ids(sink.calls)).toEqual(['1', 'preempt'])
  })

  it('does not send what another process dropped while it waited its turn', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, concurrency: 1 })
    outbox.store.commit({ events: [outgoing('1'), outgoing('2'), outgoing('3')] })
    dispatcher.start()
    const beside = attachDatabase(outbox.path)
    createStore(beside, outbox.clock).drop({ id: '2' })
    beside.close()
    sink.calls[0]?.answer(delivered)
    await sink.called(2)
    expect(ids(sink.calls)).toEqual(['1', '3'])
  })

  it.each([
    ['is dropped', (store: Store) => void store.drop({ id: '2' })],
    ['loses its place to a replayed one', (store: Store) => void store.replay({ id: '1' })],
  ])('goes on with a lane whose event %s while it is in flight, and never has two of it', async (_, interfere) => {
    const outbox = openOutbox()
    const sink = puppetSink((_event, count) => (count === 1 ? rejected : count === 2 ? undefined : delivered))
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: ['1', '2', '3'].map((id) => outgoing(id, { lane: 'l' })) })
    dispatcher.start()
    await sink.called(2)
    interfere(outbox.store)
    dispatcher.wake()
    expect(ids(sink.calls)).toEqual(['1', '2'])
    sink.calls[1]?.answer(delivered)
    await sink.called(3)
    expect(await dispatcher.drain(soon())).toBe(true)
    expect(outbox.store.list({ states: ['pending'] })).toEqual([])
  })

  it('goes on with a lane whose event ran out of time while it was in flight', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink })
    const soonOver = outbox.clock.now() + 1000
    outbox.store.commit({ events: [outgoing('1', { lane: 'l', expiresAt: soonOver }), outgoing('2', { lane: 'l' })] })
    dispatcher.start()
    outbox.clock.offsetMs += 2000
    expect(outbox.store.prune().expired).toHaveLength(1)
    dispatcher.wake()
    sink.calls[0]?.answer(delivered)
    await sink.called(2)
    expect(ids(sink.calls)).toEqual(['1', '2'])
  })

  it('does not let a delivery that hangs slow down the lanes beside it', async () => {
    const outbox = openOutbox()
    const sink = puppetSink((event) => (event.id === 'hangs' ? undefined : delivered))
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: [outgoing('hangs'), ...Array.from({ length: 500 }, (_, index) => outgoing(`${index}`, { lane: 'l' }))] })
    const begun = performance.now()
    dispatcher.start()
    await dispatcher.whenSettled(500)
    // Waiting for more outcomes before each of them would be two seconds at least.
    expect(performance.now() - begun).toBeLessThan(1500)
  })

  it('reads a row once, however many flushes there are before its turn', async () => {
    const outbox = openOutbox()
    let rows = 0
    const store: DispatcherOptions['store'] = {
      ...outbox.store,
      due(...asked) {
        const found = outbox.store.due(...asked)
        rows += found.length
        return found
      },
    }
    outbox.store.commit({ events: Array.from({ length: 1000 }, (_, index) => outgoing(`${index}`)) })
    const dispatcher = dispatch(outbox, { sink: puppetSink(() => delivered), store })
    expect(await dispatcher.drain(soon())).toBe(true)
    expect(dispatcher.settled).toHaveLength(1000)
    // `drain` looks anew once after its start.
    expect(rows).toBeLessThan(1000 + 64)
  })

  it('keeps the order of each lane whatever fails and is tried again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.nat(3)),
        async (lanes, luck) => {
          const outbox = openOutbox()
          const arrived: { id: string; lane: string }[] = []
          const sink = puppetSink((event) => {
            const drawn: number = luck.next().value
            if (drawn === 0) return transient
            if (drawn === 1) return rejected
            arrived.push({ id: event.id, lane: event.partitionkey })
            return delivered
          })
          const dispatcher = dispatch(outbox, { sink })
          outbox.store.commit({ events: lanes.map((lane, index) => outgoing(`${index}`, { lane })) })
          // With random() at 0 each retry is due at once.
          while (outbox.store.summarize()[0]?.pending) expect(await dispatcher.drain(soon())).toBe(true)
          for (const lane of ['x', 'y', 'z']) {
            const order = arrived.filter((one) => one.lane === lane).map(({ id }) => Number(id))
            expect(order).toEqual(order.toSorted((one, other) => one - other))
          }
          expect(arrived).toHaveLength(outbox.store.list({ states: ['delivered'] }).length)
          await dispatcher.close()
          outbox.database.close()
        },
      ),
      { numRuns: 15 },
    )
  })

  it('keeps sinks apart: one that hangs delays no other', async () => {
    const outbox = openOutbox()
    const dead = puppetSink()
    const slow = dispatch(outbox, { sink: dead, name: 'dead' })
    const fast = dispatch(outbox, { sink: puppetSink(() => delivered), name: 'alive' })
    slow.start()
    fast.start()
    outbox.store.commit({ events: Array.from({ length: 40 }, (_, index) => outgoing(`${index}`, { sinks: ['dead', 'alive'] })) })
    slow.wake()
    fast.wake()
    expect(await fast.drain(soon())).toBe(true)
    expect(dead.calls).toHaveLength(16)
    expect(outbox.store.summarize()).toMatchObject([{ name: 'dead', pending: 40 }])
  })
})

describe('recording outcomes', () => {
  it('groups those that come together into one transaction', async () => {
    const outbox = openOutbox()
    const batches: number[] = []
    const store: DispatcherOptions['store'] = {
      ...outbox.store,
      settle(sink, settlements, verdict) {
        batches.push(settlements.length)
        return outbox.store.settle(sink, settlements, verdict)
      },
    }
    const dispatcher = dispatch(outbox, { sink: puppetSink(() => delivered), store })
    outbox.store.commit({ events: Array.from({ length: 1000 }, (_, index) => outgoing(`${index}`)) })
    expect(await dispatcher.drain(soon())).toBe(true)
    expect(dispatcher.settled).toHaveLength(1000)
    expect(batches.length).toBeLessThan(20)
    // The bound, and what was in flight when it was reached.
    expect(Math.max(...batches)).toBeLessThanOrEqual(256 + 16)
  })

  it('groups those that come one after the other while others are under way', async () => {
    const outbox = openOutbox()
    const batches: number[] = []
    const store: DispatcherOptions['store'] = {
      ...outbox.store,
      settle(sink, settlements, verdict) {
        batches.push(settlements.length)
        return outbox.store.settle(sink, settlements, verdict)
      },
    }
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, store, concurrency: 4 })
    outbox.store.commit({ events: Array.from({ length: 40 }, (_, index) => outgoing(`${index}`)) })
    dispatcher.start()
    for (let done = 0; done < 20; done += 1) {
      sink.calls[done]?.answer(delivered)
      await nextTurn()
    }
    await dispatcher.whenSettled(20)
    expect(batches.length).toBeLessThan(10)
  })

  it('does not keep one waiting for others that do not come', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, concurrency: 2 })
    outbox.store.commit({ events: ['1', '2', '3', '4', '5'].map((id) => outgoing(id)) })
    dispatcher.start()
    const begun = performance.now()
    sink.calls[0]?.answer(delivered)
    await dispatcher.whenSettled(1)
    expect(performance.now() - begun).toBeLessThan(500)
  })

  it('tells an expiry once: not again what the janitor gave up', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink, concurrency: 1 })
    const over = outbox.clock.now() + 1000
    outbox.store.commit({ events: [outgoing('1'), outgoing('2', { expiresAt: over })] })
    dispatcher.start()
    outbox.clock.offsetMs += 2000
    expect(outbox.store.prune().expired.map(({ id }) => id)).toEqual(['2'])
    sink.calls[0]?.answer(delivered)
    await dispatcher.drain(soon())
    expect(dispatcher.settled.map(({ id }) => id)).toEqual(['1'])
  })

  it('tells each one after it is on the disk, with its attempts and how long it took', async () => {
    const outbox = openOutbox()
    const stateWhenTold: unknown[] = []
    let latencyMs = -1
    const sink = puppetSink((_, count) => (count === 1 ? transient : delivered))
    const dispatcher = dispatch(outbox, {
      sink,
      onSettled: (id, outcome, details) => {
        stateWhenTold.push([outcome.status, details.attempts, outbox.store.show(id)[0]?.deliveries[0]?.state])
        latencyMs = details.latencyMs
      },
    })
    outbox.store.commit({ events: [outgoing('e')] })
    outbox.clock.offsetMs += 5000
    while (outbox.store.summarize().length > 0) await dispatcher.drain(soon())
    expect(stateWhenTold).toEqual([
      ['retry', 1, 'pending'],
      ['delivered', 2, 'delivered'],
    ])
    expect(latencyMs).toBeGreaterThanOrEqual(5000)
  })

  it('warns of every dead letter, and goes on with its lane', async () => {
    const outbox = openOutbox()
    const dispatcher = dispatch(outbox, { sink: puppetSink((event) => (event.id === '1' ? rejected : delivered)) })
    outbox.store.commit({ events: [outgoing('1', { lane: 'l' }), outgoing('2', { lane: 'l' })] })
    await dispatcher.drain(soon())
    expect(outbox.log.lines).toMatchObject([{ level: 'warn', fields: { sink: 'a', id: '1', code: 'http_400', attempts: 1 } }])
    expect(outbox.store.list()).toMatchObject([{ state: 'dead', lastDetail: 'not like this' }, { state: 'delivered' }])
    expect(dispatcher.health()).toEqual({ state: 'ok' })
  })

  it('makes a dead letter of what is too old, without asking the sink', async () => {
    const outbox = openOutbox()
    const sink = puppetSink(() => delivered)
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: [outgoing('old', { expiresAt: Date.now() + 60_000 }), outgoing('young')] })
    outbox.clock.offsetMs += 60_001
    await dispatcher.drain(soon())
    expect(ids(sink.calls)).toEqual(['young'])
    expect(outbox.store.list({ states: ['dead'] })).toMatchObject([{ id: 'old', lastCode: 'expired', attempts: 0 }])
    expect(dispatcher.settled).toContainEqual({ id: 'old', outcome: expect.objectContaining({ code: 'expired' }), attempts: 0 })
  })

  it('makes a dead letter of an event whose stored text is damaged', async () => {
    const outbox = openOutbox()
    const sink = puppetSink(() => delivered)
    outbox.store.commit({ events: [outgoing('1', { lane: 'l' }), outgoing('2', { lane: 'l' }), outgoing('3', { lane: 'l' })] })
    outbox.database.db.run(`UPDATE events SET body = '{' WHERE id = '1'`)
    outbox.database.db.run(`UPDATE events SET body = '{"id":"2"}' WHERE id = '2'`)
    await dispatch(outbox, { sink }).drain(soon())
    expect(ids(sink.calls)).toEqual(['3'])
    expect(outbox.store.list({ states: ['dead'] })).toMatchObject([{ lastCode: 'unreadable' }, { lastCode: 'unreadable' }])
  })

  it('loses nothing while the disk is full: says so once, and records the outcome when there is space', async () => {
    const outbox = openOutbox()
    let full = true
    const store: DispatcherOptions['store'] = {
      ...outbox.store,
      settle(...settlement) {
        const { db } = outbox.database
        // No page may be added any more: what does not fit into the free ones fails as on a full disk.
        if (full) db.get(`PRAGMA max_page_count = 1`)
        if (full) outbox.store.writeState('filler', 'x'.repeat(1_000_000))
        return outbox.store.settle(...settlement)
      },
    }
    const sink = puppetSink(() => delivered)
    const dispatcher = dispatch(outbox, { sink, store })
    outbox.store.commit({ events: [outgoing('1', { lane: 'l' }), outgoing('2', { lane: 'l' })] })
    expect(await dispatcher.drain({ signal: AbortSignal.timeout(50) })).toBe(false)
    expect(outbox.store.list()).toMatchObject([{ state: 'pending', attempts: 0 }, { state: 'pending' }])
    expect(outbox.log.lines).toMatchObject([{ level: 'error', message: expect.stringMatching(/deliveries to a pause: .*free some space/) }])
    full = false
    outbox.database.db.get('PRAGMA max_page_count = 1000000')
    await dispatcher.whenSettled(2)
    expect(ids(sink.calls)).toEqual(['1', '2'])
    expect(outbox.log.lines.map(({ level }) => level)).toEqual(['error', 'info'])
  })
})

describe('stopping', () => {
  it('drain delivers what is due, leaves what is to wait, and ends', async () => {
    const outbox = openOutbox()
    const sink = puppetSink((event) => (event.id === 'later' ? { ...transient, retryAfterMs: 60_000 } : delivered))
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: [outgoing('later'), ...Array.from({ length: 300 }, (_, index) => outgoing(`${index}`))] })
    expect(await dispatcher.drain(soon())).toBe(true)
    expect(outbox.store.summarize()).toMatchObject([{ pending: 1 }])
  })

  it('drain ends when it is told to', async () => {
    const outbox = openOutbox()
    const dispatcher = dispatch(outbox, { sink: puppetSink() })
    outbox.store.commit({ events: [outgoing('e')] })
    const controller = new AbortController()
    const drained = dispatcher.drain(controller)
    controller.abort()
    expect(await drained).toBe(false)
  })

  it('close aborts what is in flight: it stays as it was, unless it arrived all the same', async () => {
    const outbox = openOutbox()
    const sink = puppetSink(undefined, { deaf: true })
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: [outgoing('1'), outgoing('2'), outgoing('3')] })
    dispatcher.start()
    sink.calls[0]?.signal.addEventListener('abort', () => sink.calls[0]?.answer(transient))
    sink.calls[1]?.signal.addEventListener('abort', () => sink.calls[1]?.answer(delivered))
    // The third one ignores its signal, and is waited for no longer than its grace.
    await Promise.all([dispatcher.close(), dispatcher.close()])
    expect(outbox.store.list()).toMatchObject([
      { id: '1', state: 'pending', attempts: 0, lastCode: null },
      { id: '2', state: 'delivered' },
      { id: '3', state: 'pending', attempts: 0 },
    ])
    dispatcher.wake()
    expect(sink.calls).toHaveLength(3)
  })

  it('close records what arrived just before', async () => {
    const outbox = openOutbox()
    const sink = puppetSink()
    const dispatcher = dispatch(outbox, { sink })
    outbox.store.commit({ events: [outgoing('e')] })
    dispatcher.start()
    sink.calls[0]?.answer(delivered)
    await dispatcher.close()
    expect(outbox.store.list()).toMatchObject([{ state: 'delivered' }])
  })
})

it('20,000 events go to a sink that takes no time at more than 5,000 a second', async () => {
  const outbox = openOutbox()
  outbox.store.commit({ events: Array.from({ length: 20_000 }, (_, index) => outgoing(`${index}`, { lane: `${index % 9000}` })) })
  const dispatcher = dispatch(outbox, { sink: { deliver: async () => delivered } })
  const startedAt = performance.now()
  expect(await dispatcher.drain({ signal: AbortSignal.timeout(15_000) })).toBe(true)
  expect(20_000 / ((performance.now() - startedAt) / 1000)).toBeGreaterThan(5000)
})
