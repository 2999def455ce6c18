import { describe, expect, it } from 'vitest'
import { eventOf, outgoing } from './outbox-events.ts'
import { brokenLanes, openOutbox } from './outbox-fixture.ts'

const hourMs = 60 * 60 * 1000
const source = eventOf('x').source

/** An outbox with these events, and hands to settle their rows at the sink `a`. The first event of a fresh file has the number 1. */
function outboxWith(...events: ReturnType<typeof outgoing>[]) {
  const outbox = openOutbox()
  outbox.store.commit({ events })
  const seqs = new Map(events.map(({ event }, index) => [event.id, index + 1]))
  const seqOf = (id: string): number => seqs.get(id) ?? 0
  const key = (id: string) => ({ seq: seqOf(id), lane: outbox.store.show(id)[0]?.event?.partitionkey ?? '' })
  return {
    ...outbox,
    seqOf,
    die: (id: string) => outbox.store.settle('a', [{ ...key(id), status: 'dead', code: 'http_400', detail: 'no', attempted: true }]),
    deliver: (id: string) => outbox.store.settle('a', [{ ...key(id), status: 'delivered' }]),
    retry: (id: string, nextAttemptAt: number) =>
      outbox.store.settle('a', [{ ...key(id), status: 'retry', code: 'http_503', detail: 'later', nextAttemptAt }]),
    due: (sink = 'a') => outbox.store.due(sink, outbox.clock.now(), 100).map(({ seq }) => seq),
  }
}

describe('commit', () => {
  it('keeps state and events together: neither survives where one cannot be stored', () => {
    const { store } = openOutbox()
    store.writeState('lifecycle', 'before')
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    expect(() => store.commit({ state: { lifecycle: 'after', broken: circular }, events: [outgoing('e')] })).toThrow('circular')
    expect(store.readState('lifecycle')).toBe('before')
    expect(store.list()).toEqual([])
    expect(store.commit({ state: { lifecycle: undefined } })).toEqual({ stored: 0, known: 0 })
    expect(store.readState('lifecycle')).toBeUndefined()
  })

  it('keeps the first copy of an event that comes again, whatever the second one says', () => {
    const { store } = openOutbox()
    expect(store.commit({ events: [outgoing('e'), outgoing('f')] })).toEqual({ stored: 2, known: 0 })
    const again = { ...outgoing('e', { sinks: ['a', 'b'] }), event: { ...eventOf('e'), data: { eventId: 'other' } } }
    expect(store.commit({ events: [again, outgoing('g')] })).toEqual({ stored: 1, known: 1 })
    expect(store.show('e')).toMatchObject([{ event: { data: { eventId: 'e' } }, deliveries: [{ sink: 'a' }] }])
  })

  it('stores nothing for an event that no sink wants', () => {
    const { store } = openOutbox()
    expect(store.commit({ events: [outgoing('e', { sinks: [] })] })).toEqual({ stored: 0, known: 0 })
    expect(store.show('e')).toEqual([])
  })

  it('takes ids of one name from two sources for two events', () => {
    const { store } = openOutbox()
    const other = { ...outgoing('e'), event: { ...eventOf('e'), source: '/other' } }
    expect(store.commit({ events: [outgoing('e'), other] })).toEqual({ stored: 2, known: 0 })
    expect(store.show('e').map((shown) => shown.source)).toEqual([source, '/other'])
  })
})

describe('what is due', () => {
  it('is the first of each lane, the urgent before the rest', () => {
    const { due, seqOf } = outboxWith(
      outgoing('a1', { lane: 'a' }),
      outgoing('a2', { lane: 'a' }),
      outgoing('b1', { lane: 'b' }),
      outgoing('p1', { lane: 'p', priority: 1 }),
    )
    expect(due()).toEqual([seqOf('p1'), seqOf('a1'), seqOf('b1')])
  })

  it('moves on along the lane with each settlement, per sink', () => {
    const { due, deliver, die, seqOf } = outboxWith(...['1', '2', '3'].map((id) => outgoing(id, { lane: 'l', sinks: ['a', 'b'] })))
    deliver('1')
    expect(due()).toEqual([seqOf('2')])
    die('2')
    expect(due()).toEqual([seqOf('3')])
    expect(due('b')).toEqual([seqOf('1')])
  })

  it('waits for a head that is to be tried later', () => {
    const { due, retry, store, clock } = outboxWith(outgoing('1', { lane: 'l' }), outgoing('2', { lane: 'l' }))
    const later = clock.now() + hourMs
    retry('1', later)
    expect(due()).toEqual([])
    expect(store.nextDueAfter('a', clock.now())).toBe(later)
    clock.offsetMs += hourMs
    expect(due()).toHaveLength(1)
  })
})

describe('replay and drop', () => {
  it('a replayed letter takes its old place in the lane, with a fresh count and time to live', () => {
    const { due, die, retry, store, seqOf, database, clock } = outboxWith(
      outgoing('1', { lane: 'l', expiresAt: Date.now() + 1000 }),
      outgoing('2', { lane: 'l' }),
    )
    die('1')
    expect(due()).toEqual([seqOf('2')])
    clock.offsetMs += 2000
    expect(store.replay({ id: '1' })).toEqual({ replayed: 1, resumed: [] })
    expect(due()).toEqual([seqOf('1')])
    expect(store.list()).toMatchObject([{ id: '1', attempts: 0, state: 'pending', settledAt: null }, { id: '2' }])
    expect(store.list()[0]?.expiresAt).toBeGreaterThan(clock.now() + hourMs)
    // The outcome of the second one, which was in flight meanwhile.
    retry('2', clock.now())
    expect(due()).toEqual([seqOf('1')])
    expect(brokenLanes(database)).toEqual([])
  })

  it('replay takes the letters of one sink, of one event, or all', () => {
    const { die, store } = outboxWith(outgoing('1'), outgoing('2'), outgoing('3'))
    for (const id of ['1', '2', '3']) die(id)
    expect(store.replay({ sink: 'b' }).replayed).toBe(0)
    expect(store.replay({ id: '2' }).replayed).toBe(1)
    expect(store.replay({}).replayed).toBe(2)
    expect(store.summarize()).toMatchObject([{ name: 'a', pending: 3, dead: 0 }])
  })

  it('replay lifts the halt of its sink alone, with or without dead letters', () => {
    const { store } = openOutbox()
    store.halt('a', 'http_410: gone')
    store.halt('b', 'http_410: gone')
    store.halt('a', 'another reason')
    expect(store.readSink('a').haltedReason).toBe('http_410: gone')
    expect(store.replay({ sink: 'a' })).toEqual({ replayed: 0, resumed: ['a'] })
    expect(store.summarize()).toEqual([{ name: 'b', pending: 0, dead: 0, oldestPendingAt: null, haltedReason: 'http_410: gone' }])
    expect(store.replay({})).toEqual({ replayed: 0, resumed: ['b'] })
  })

  it('drop removes what waits or died, not what is history, and lets the lane go on', () => {
    const { deliver, die, store, due, seqOf } = outboxWith(...['1', '2', '3', '4'].map((id) => outgoing(id, { lane: 'l' })))
    deliver('1')
    die('2')
    expect(store.drop({ id: '3' })).toBe(1)
    expect(due()).toEqual([seqOf('4')])
    expect(store.drop({ state: 'dead' })).toBe(1)
    expect(store.show('2')).toEqual([])
    expect(store.drop({ sink: 'b' })).toBe(0)
    expect(store.drop({})).toBe(1)
    expect(store.list()).toMatchObject([{ id: '1', state: 'delivered' }])
  })

  it('both work through more rows than one transaction takes', () => {
    const { store, database } = openOutbox()
    store.commit({ events: Array.from({ length: 1200 }, (_, index) => outgoing(`${index}`, { lane: `${index % 7}` })) })
    database.db.run(`UPDATE deliveries SET state = 'dead', settled_at = 1, next_attempt_at = NULL`)
    expect(store.replay({ sink: 'a' }).replayed).toBe(1200)
    expect(brokenLanes(database)).toEqual([])
    expect(store.drop({ sink: 'a' })).toBe(1200)
    expect(database.db.get('SELECT count(*) AS n FROM events')).toEqual({ n: 0 })
  })
})

describe('the end of its time', () => {
  it('makes a dead letter of what still waits, for sinks that are configured or not, and says why it waited', () => {
    const expiresAt = Date.now() + hourMs
    const { store, clock, retry, database } = outboxWith(
      outgoing('1', { lane: 'l', sinks: ['a', 'gone'], expiresAt }),
      outgoing('2', { lane: 'l', expiresAt: expiresAt + hourMs }),
    )
    retry('1', clock.now() + 100)
    expect(store.prune()).toEqual({ expired: [], removed: [], more: false })
    clock.offsetMs += hourMs + 1
    const { expired, more } = store.prune()
    expect(more).toBe(false)
    expect(expired.toSorted((one, other) => one.sink.localeCompare(other.sink))).toEqual([
      { sink: 'a', id: '1', attempts: 1 },
      { sink: 'gone', id: '1', attempts: 0 },
    ])
    expect(store.list({ states: ['dead'] })).toMatchObject([
      { sink: 'a', lastCode: 'expired', lastDetail: 'last failure: http_503: later' },
      { sink: 'gone', lastCode: 'expired', lastDetail: 'never tried' },
    ])
    expect(brokenLanes(database)).toEqual([])
  })

  it('removes what was delivered after a day and what died after thirty, with events that nobody needs', () => {
    const { store, clock, deliver, die, database } = outboxWith(outgoing('1'), outgoing('2'), outgoing('3'))
    deliver('1')
    die('2')
    clock.offsetMs += 24 * hourMs - 1000
    expect(store.prune().removed).toEqual([])
    expect(store.wasDelivered(source, '1', 'a')).toBe(true)
    expect(store.wasDelivered(source, '2', 'a')).toBe(false)
    clock.offsetMs += 2000
    expect(store.prune().removed).toEqual([{ sink: 'a', state: 'delivered', count: 1 }])
    expect(store.show('1')).toEqual([])
    expect(store.show('2')).toHaveLength(1)
    clock.offsetMs += 29 * 24 * hourMs
    expect(store.prune().removed).toEqual([{ sink: 'a', state: 'dead', count: 1 }])
    expect(database.db.all('SELECT id FROM events')).toEqual([{ id: '3' }])
  })

  it('comes in steps of bounded size', () => {
    const { store, clock } = openOutbox()
    store.commit({ events: Array.from({ length: 501 }, (_, index) => outgoing(`${index}`, { expiresAt: clock.now() })) })
    expect(store.prune()).toMatchObject({ expired: { length: 500 }, more: true })
    expect(store.prune()).toMatchObject({ expired: { length: 1 }, more: false })
  })
})

it('a summary tells per sink what waits since when, and what died', () => {
  const { store, clock, die } = outboxWith(outgoing('1', { lane: 'l', sinks: ['a', 'b'] }))
  const first = store.list()[0]?.createdAt
  clock.offsetMs += 5000
  store.commit({ events: [outgoing('2', { lane: 'p', priority: 1 })] })
  expect(store.summarize()).toEqual([
    { name: 'a', pending: 2, dead: 0, oldestPendingAt: first, haltedReason: null },
    { name: 'b', pending: 1, dead: 0, oldestPendingAt: first, haltedReason: null },
  ])
  die('1')
  expect(store.summarize()[0]).toMatchObject({ pending: 1, dead: 1 })
  expect(store.summarize()[0]?.oldestPendingAt).toBeGreaterThanOrEqual((first ?? 0) + 5000)
})

it('an outcome that comes after the row was given up: delivered counts, a failure changes nothing', () => {
  const { store, clock, deliver, die, retry } = outboxWith(outgoing('1'), outgoing('2'))
  die('1')
  deliver('1')
  die('2')
  retry('2', clock.now())
  expect(store.list()).toMatchObject([
    { id: '1', state: 'delivered' },
    { id: '2', state: 'dead', attempts: 1 },
  ])
})

it('POSTs that a clock set back has put into the future do not count as recent', () => {
  const { store, clock } = openOutbox()
  const start = clock.now()
  store.recordApproval('command:1', ['a'], '1')
  expect(store.countPosted(start - 1)).toBe(1)
  clock.offsetMs -= 3_600_000
  expect(store.countPosted(clock.now() - 60_000)).toBe(0)
})
