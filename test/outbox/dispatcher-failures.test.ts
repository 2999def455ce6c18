import { expect, it } from 'vitest'
import { delivered, type DeliveryOutcome } from '../../sinks/contract.ts'
import { outgoing, transient } from './outbox-events.ts'
import { dispatch, openOutbox, puppetSink } from './outbox-fixture.ts'

const soon = () => ({ signal: AbortSignal.timeout(10_000) })
const refused = { status: 'retry', because: 'refused', code: 'unauthorized', detail: 'no such key' } as const
const gone = { status: 'retry', because: 'stopped', code: 'http_410', detail: 'gone' } as const
const throttled = (retryAfterMs: number): DeliveryOutcome => ({
  status: 'retry',
  because: 'throttled',
  code: 'http_429',
  detail: 'too fast',
  retryAfterMs,
})
/** Just below 1: a retry waits for as long as it can. */
const patient = { random: () => 0.999 }

it('tries again after 250 ms, doubling', async () => {
  const outbox = openOutbox()
  const sink = puppetSink(() => transient)
  const dispatcher = dispatch(outbox, { sink, ...patient })
  outbox.store.commit({ events: [outgoing('e')] })
  for (const expected of [250, 500, 1000, 2000]) {
    const before = outbox.clock.now()
    await dispatcher.drain(soon())
    const row = outbox.store.list()[0]
    const wait = (row?.nextAttemptAt ?? 0) - before
    expect(wait).toBeGreaterThanOrEqual(expected * 0.99)
    expect(wait).toBeLessThan(expected + 240)
    outbox.clock.offsetMs += wait
  }
  expect(outbox.store.list()).toMatchObject([{ attempts: 4, lastCode: 'http_503', lastDetail: 'down for now' }])
})

it('comes back by itself when the time is there', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count < 3 ? transient : delivered))
  const dispatcher = dispatch(outbox, { sink, random: () => 0.1 })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  await dispatcher.whenSettled(3)
  expect(outbox.store.list()).toMatchObject([{ state: 'delivered', attempts: 3 }])
})

it('tells the first failure and the recovery, once each, and keeps the health between', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count < 4 ? transient : delivered))
  const dispatcher = dispatch(outbox, { sink })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  await dispatcher.whenSettled(1)
  expect(dispatcher.health()).toMatchObject({ state: 'failing', code: 'http_503', detail: 'down for now' })
  await dispatcher.whenSettled(4)
  expect(dispatcher.health()).toEqual({ state: 'ok' })
  expect(outbox.log.lines).toMatchObject([
    { level: 'warn', fields: { sink: 'a', code: 'http_503' } },
    { level: 'info', fields: { sink: 'a', failures: 3 } },
  ])
})

it('takes what a sink throws, and what is no outcome, as a failure that passes', async () => {
  const outbox = openOutbox()
  const answers: (() => Promise<DeliveryOutcome>)[] = [
    () => {
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    },
    () => Promise.reject(new Error('late')),
    // What a module without types may give.
    async () => JSON.parse('"ok"'),
    async () => JSON.parse('{"status":"retry"}'),
  ]
  const sink = { deliver: () => answers.shift()?.() ?? Promise.resolve(delivered) }
  const dispatcher = dispatch(outbox, { sink })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  await dispatcher.whenSettled(5)
  expect(dispatcher.settled.map(({ outcome }) => ('code' in outcome ? outcome.code : outcome.status))).toEqual([
    'ECONNRESET',
    'threw',
    'invalid_outcome',
    'invalid_outcome',
    'delivered',
  ])
})

it('gives a lane back when a sink ignores its signal, and ignores what comes too late', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count === 1 ? undefined : delivered), { deaf: true })
  const dispatcher = dispatch(outbox, { sink, timeoutMs: 20 })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  await dispatcher.whenSettled(2)
  expect(sink.calls[0]?.signal.aborted).toBe(true)
  expect(dispatcher.settled).toMatchObject([{ outcome: { code: 'timeout' } }, { outcome: { status: 'delivered' }, attempts: 2 }])
  sink.calls[0]?.answer({ status: 'rejected', code: 'late', detail: 'late' })
  await dispatcher.drain(soon())
  expect(outbox.store.list()).toMatchObject([{ state: 'delivered', attempts: 2 }])
})

it('lets a sink that heeds its signal say itself what happened', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count === 1 ? undefined : delivered), { deaf: true })
  const dispatcher = dispatch(outbox, { sink, timeoutMs: 20 })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  sink.calls[0]?.signal.addEventListener('abort', () => sink.calls[0]?.answer({ ...transient, code: 'connect_timeout' }))
  await dispatcher.whenSettled(1)
  expect(dispatcher.settled).toMatchObject([{ outcome: { code: 'connect_timeout' } }])
})

it('asks a dead sink with thousands of lanes for less and less, and with all its strength when it is back', async () => {
  const outbox = openOutbox()
  let dead = true
  let inFlight = 0
  let most = 0
  const sink = {
    async deliver() {
      inFlight += 1
      most = Math.max(most, inFlight)
      await new Promise((resolve) => setTimeout(resolve, 2))
      inFlight -= 1
      return dead ? transient : delivered
    },
  }
  const dispatcher = dispatch(outbox, { sink, ...patient })
  outbox.store.commit({ events: Array.from({ length: 3000 }, (_, index) => outgoing(`${index}`)) })
  // Each drain ends where the sink is held back.
  for (let round = 0; round < 20; round += 1) {
    most = 0
    expect(await dispatcher.drain(soon())).toBe(true)
  }
  expect(most).toBeLessThanOrEqual(1)
  expect(dispatcher.settled.length).toBeLessThan(40)
  dead = false
  outbox.clock.offsetMs += 60_000
  expect(await dispatcher.drain(soon())).toBe(true)
  expect(most).toBe(16)
  expect(outbox.store.summarize()).toEqual([])
})

it('Retry-After holds back the whole sink, for at most an hour, also after a restart', async () => {
  const outbox = openOutbox()
  outbox.store.commit({ events: [outgoing('1')] })
  const first = dispatch(outbox, { sink: puppetSink(() => throttled(20 * 60_000)) })
  await first.drain(soon())
  await first.close()
  outbox.store.commit({ events: [outgoing('2')] })
  outbox.database.close()

  const again = openOutbox(outbox.path)
  again.clock.offsetMs = 19 * 60_000
  const sink = puppetSink(() => throttled(48 * 60 * 60_000))
  const dispatcher = dispatch(again, { sink })
  await dispatcher.drain(soon())
  expect(sink.calls).toEqual([])
  again.clock.offsetMs = 21 * 60_000
  const before = again.clock.now()
  await dispatcher.drain(soon())
  expect(sink.calls).toHaveLength(2)
  const waits = again.store.list().map(({ nextAttemptAt }) => Math.round(((nextAttemptAt ?? 0) - before) / 60_000))
  expect(waits).toEqual([60, 60])
})

it('a sink that refuses everything is tried once in five seconds, and told as one that needs a person', async () => {
  const outbox = openOutbox()
  const sink = puppetSink(() => refused)
  const dispatcher = dispatch(outbox, { sink, ...patient })
  outbox.store.commit({ events: Array.from({ length: 100 }, (_, index) => outgoing(`${index}`)) })
  await dispatcher.drain(soon())
  expect(dispatcher.health()).toMatchObject({ state: 'refused', code: 'unauthorized' })
  expect(sink.calls).toHaveLength(16)
  for (let probe = 0; probe < 6; probe++) {
    const calls = sink.calls.length
    outbox.clock.offsetMs += 4900
    await dispatcher.drain(soon())
    expect(sink.calls).toHaveLength(calls)
    outbox.clock.offsetMs += 200
    await dispatcher.drain(soon())
    expect(sink.calls).toHaveLength(calls + 1)
  }
  expect(outbox.log.lines).toMatchObject([{ level: 'error', message: expect.stringMatching(/refuses us.*credentials/) }])
})

it('an event that is refused while others are not holds none of them up, and waits for half a minute at most itself', async () => {
  const outbox = openOutbox()
  const sink = puppetSink(({ id }) => (id === 'bad' ? refused : delivered))
  const dispatcher = dispatch(outbox, { sink, ...patient })
  outbox.store.commit({ events: [outgoing('bad')] })
  await dispatcher.drain(soon())
  for (let second = 1; second <= 120; second++) {
    outbox.clock.offsetMs += 1000
    outbox.store.commit({ events: [outgoing(`good ${second}`)] })
    await dispatcher.drain(soon())
    expect(sink.calls.some(({ id }) => id === `good ${second}`)).toBe(true)
  }
  const tries = sink.calls.filter(({ id }) => id === 'bad').length
  expect(tries).toBeGreaterThanOrEqual(4)
  expect(tries).toBeLessThanOrEqual(30)
})

it('a sink that says it is gone stands still until it is resumed, also after a restart', async () => {
  const outbox = openOutbox()
  const first = dispatch(outbox, { sink: puppetSink(() => gone), concurrency: 1 })
  outbox.store.commit({ events: [outgoing('1'), outgoing('2')] })
  await first.drain(soon())
  expect(first.health()).toEqual({ state: 'halted', reason: 'http_410: gone' })
  await first.close()
  outbox.database.close()

  const again = openOutbox(outbox.path)
  const sink = puppetSink(() => delivered)
  const dispatcher = dispatch(again, { sink })
  again.clock.offsetMs += 60_000
  await dispatcher.drain(soon())
  expect(sink.calls).toEqual([])
  expect(again.log.lines).toMatchObject([{ level: 'error', message: expect.stringMatching(/halted.*foreshock outbox replay --sink a/) }])
  expect(again.store.summarize()).toMatchObject([{ pending: 2, haltedReason: 'http_410: gone' }])
  again.store.replay({ sink: 'a' })
  await dispatcher.whenSettled(2)
  expect(dispatcher.health()).toEqual({ state: 'ok' })
})

it('a clock that was wrong does not silence a sink', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count === 1 ? transient : delivered))
  const dispatcher = dispatch(outbox, { sink, ...patient })
  outbox.clock.offsetMs = 30 * 24 * 60 * 60_000
  outbox.store.commit({ events: [outgoing('e', { expiresAt: outbox.clock.now() + 60_000 })] })
  dispatcher.start()
  await dispatcher.whenSettled(1)
  outbox.clock.offsetMs = 0
  await dispatcher.whenSettled(2)
  expect(outbox.store.list()).toMatchObject([{ state: 'delivered' }])
})
