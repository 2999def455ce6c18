import { expect, test } from 'vitest'
import { MessageQueue, type Enqueued, type Held, type QueueOptions } from '../../../src/simulator/broker/queue.ts'

const defaults: QueueOptions = {
  lockMs: 1000,
  maxDeliveryCount: 3,
  requiresSession: false,
  duplicateDetectionMs: 0,
  defaultTtlMs: null,
  deadLetterOnExpiry: false,
  maxMessages: 1000,
  maxBytes: 1_000_000,
}

/** A queue with its dead letters and a clock that moves by hand. */
function setUp(options: Partial<QueueOptions> = {}) {
  let now = 10_000
  let tokens = 0
  const clock = { now: () => now, token: () => `token-${(tokens += 1)}` }
  const settings = { ...defaults, ...options }
  const dead = new MessageQueue<string>({ ...settings, requiresSession: false, deadLetterOnExpiry: false }, clock, null)
  const queue = new MessageQueue<string>(settings, clock, dead)
  return {
    queue,
    dead,
    put: (payload: string, more: Partial<Enqueued<string>> = {}) =>
      queue.enqueue({ payload, bytes: 10, messageId: null, sessionId: null, ttlMs: null, scheduledAt: null, ...more }),
    wait: (ms: number) => {
      now += ms
      return queue.tick()
    },
    now: () => now,
  }
}

const tokenOf = (held: Held<string> | null): string => held?.lock?.token ?? 'nothing was locked'
const payloads = (queue: MessageQueue<string>): string[] => queue.peek(0, 100, null).map((held) => held.payload)

test('messages are locked in the order in which they came, each for one receiver', () => {
  const { queue, put } = setUp()
  put('a')
  put('b')
  expect([queue.lockNext(null)?.payload, queue.lockNext(null)?.payload, queue.lockNext(null)]).toEqual(['a', 'b', null])
})

test('a completed message is gone, and its token settles nothing any more', () => {
  const { queue, put } = setUp()
  put('a')
  const token = tokenOf(queue.lockNext(null))
  expect(queue.complete(token)).toBe('ok')
  expect(queue.size).toBe(0)
  expect(queue.complete(token)).toBe('lock-lost')
})

test('an abandoned message comes back before younger ones, with its delivery count up by one and the changed properties', () => {
  const { queue, put } = setUp()
  put('a')
  put('b')
  queue.abandon(tokenOf(queue.lockNext(null)), { tried: true })
  expect(queue.lockNext(null)).toMatchObject({ payload: 'a', deliveryCount: 1, modified: { tried: true } })
})

test('a released message comes back with its delivery count as it was', () => {
  const { queue, put } = setUp()
  put('a')
  queue.release(tokenOf(queue.lockNext(null)))
  expect(queue.lockNext(null)).toMatchObject({ payload: 'a', deliveryCount: 0 })
})

test('a lock that runs out counts as a delivery and costs the token its power', () => {
  const { queue, put, wait } = setUp()
  put('a')
  const token = tokenOf(queue.lockNext(null))
  wait(999)
  expect(queue.lockNext(null)).toBeNull()
  wait(1)
  expect(queue.complete(token)).toBe('lock-lost')
  expect(queue.lockNext(null)).toMatchObject({ payload: 'a', deliveryCount: 1 })
})

test('a token has no power after its time even when nobody has looked since', () => {
  let now = 0
  const queue = new MessageQueue<string>(defaults, { now: () => now, token: () => 't' }, null)
  queue.enqueue({ payload: 'a', bytes: 1, messageId: null, sessionId: null, ttlMs: null, scheduledAt: null })
  queue.lockNext(null)
  now = 1000
  expect(queue.complete('t')).toBe('lock-lost')
})

test('a renewed lock holds from the moment of renewal', () => {
  const { queue, put, wait, now } = setUp()
  put('a')
  const token = tokenOf(queue.lockNext(null))
  wait(900)
  expect(queue.renew(token)).toBe(now() + 1000)
  wait(900)
  expect(queue.lockNext(null)).toBeNull()
  wait(100)
  expect(queue.renew(token)).toBeNull()
  expect(queue.lockNext(null)?.payload).toBe('a')
})

test('the last permitted delivery ends among the dead letters with the reason of Azure', () => {
  const { queue, dead, put } = setUp({ maxDeliveryCount: 2 })
  put('a')
  queue.abandon(tokenOf(queue.lockNext(null)), {})
  queue.abandon(tokenOf(queue.lockNext(null)), {})
  expect(queue.size).toBe(0)
  expect(dead.lockNext(null)).toMatchObject({
    payload: 'a',
    sequenceNumber: 1,
    deliveryCount: 2,
    deadLetter: { reason: 'MaxDeliveryCountExceeded' },
  })
})

test('a dead letter keeps reason, description and properties, and can be completed there but not die again', () => {
  const { queue, dead, put } = setUp()
  put('a')
  queue.deadLetter(tokenOf(queue.lockNext(null)), { reason: 'bad', description: 'worse', properties: { by: 'me' } })
  const held = dead.lockNext(null)
  expect(held?.deadLetter).toEqual({ reason: 'bad', description: 'worse', properties: { by: 'me' } })
  dead.deadLetter(tokenOf(held), { reason: '', description: '', properties: {} })
  expect(payloads(dead)).toEqual(['a'])
  for (let times = 0; times < 10; times += 1) dead.abandon(tokenOf(dead.lockNext(null)), {})
  expect(dead.complete(tokenOf(dead.lockNext(null)))).toBe('ok')
})

test('a deferred message is passed over until it is asked for by its number', () => {
  const { queue, put } = setUp()
  put('a')
  queue.defer(tokenOf(queue.lockNext(null)), {})
  expect(queue.lockNext(null)).toBeNull()
  expect(queue.lockDeferred(2)).toBeNull()
  const held = queue.lockDeferred(1)
  expect(held).toMatchObject({ payload: 'a', state: 'deferred' })
  expect(queue.lockDeferred(1)).toBeNull()
  queue.abandon(tokenOf(held), {})
  expect(queue.lockNext(null)).toBeNull()
  expect(queue.complete(tokenOf(queue.lockDeferred(1)))).toBe('ok')
})

test('a scheduled message waits for its time, then gets a new number at the end of the line', () => {
  const { queue, put, wait, now } = setUp()
  const at = now() + 500
  put('later', { scheduledAt: at })
  put('now')
  expect(queue.nextDue()).toBe(at)
  expect(queue.complete(tokenOf(queue.lockNext(null)))).toBe('ok')
  expect(queue.lockNext(null)).toBeNull()
  wait(500)
  expect(queue.lockNext(null)).toMatchObject({ payload: 'later', sequenceNumber: 3, enqueuedSequenceNumber: 1, enqueuedAt: at })
})

test('a scheduled message can be called off, once', () => {
  const { queue, put, wait, now } = setUp()
  put('later', { scheduledAt: now() + 500 })
  expect([queue.cancelScheduled(1), queue.cancelScheduled(1)]).toEqual([true, false])
  wait(1000)
  expect(queue.size).toBe(0)
})

test('an active message cannot be called off', () => {
  const { queue, put } = setUp()
  put('a')
  expect(queue.cancelScheduled(1)).toBe(false)
  expect(queue.size).toBe(1)
})

test('the shorter of both lives counts, and an expired message is gone', () => {
  const { queue, put, wait } = setUp({ defaultTtlMs: 1000 })
  put('short', { ttlMs: 100 })
  put('long', { ttlMs: 5000 })
  wait(100)
  expect(payloads(queue)).toEqual(['long'])
  wait(900)
  expect(payloads(queue)).toEqual([])
})

test('where the queue says so, an expired message becomes a dead letter and lives on there', () => {
  const { queue, dead, put, wait } = setUp({ deadLetterOnExpiry: true })
  put('a', { ttlMs: 100 })
  wait(100)
  expect(queue.size).toBe(0)
  wait(10_000)
  expect(dead.lockNext(null)?.deadLetter?.reason).toBe('TTLExpiredException')
})

test('a message that is locked when its life ends can still be completed, but does not come back', () => {
  const { queue, put, wait } = setUp()
  put('a', { ttlMs: 100 })
  put('b', { ttlMs: 100 })
  const first = tokenOf(queue.lockNext(null))
  const second = tokenOf(queue.lockNext(null))
  wait(200)
  expect(queue.complete(first)).toBe('ok')
  expect(queue.abandon(second, {})).toBe('ok')
  expect(queue.lockNext(null)).toBeNull()
  expect(queue.size).toBe(0)
})

test('the life of a scheduled message begins when its time comes', () => {
  const { queue, put, wait, now } = setUp()
  put('a', { scheduledAt: now() + 1000, ttlMs: 100 })
  wait(1000)
  expect(payloads(queue)).toEqual(['a'])
  wait(100)
  expect(payloads(queue)).toEqual([])
})

test('a repeated message id is dropped within the window and taken after it', () => {
  const { queue, put, wait } = setUp({ duplicateDetectionMs: 1000 })
  expect(put('a', { messageId: 'x' })).toBe(1)
  wait(900)
  expect(put('b', { messageId: 'x' })).toBeNull()
  wait(100)
  expect(put('c', { messageId: 'x' })).toBe(2)
  expect(payloads(queue)).toEqual(['a', 'c'])
})

test('duplicates are known also after the first was completed', () => {
  const { queue, put } = setUp({ duplicateDetectionMs: 1000 })
  put('a', { messageId: 'x' })
  queue.removeNext(null)
  expect(put('b', { messageId: 'x' })).toBeNull()
})

test('receive and delete leaves nothing to settle', () => {
  const { queue, put } = setUp()
  put('a')
  expect(queue.removeNext(null)).toMatchObject({ payload: 'a', lock: null })
  expect(queue.size).toBe(0)
})

test('peek shows every state from a number on and changes nothing', () => {
  const { queue, put, now } = setUp()
  put('locked')
  put('active')
  put('scheduled', { scheduledAt: now() + 1000 })
  queue.lockNext(null)
  expect(queue.peek(2, 1, null).map((held) => held.payload)).toEqual(['active'])
  expect(queue.peek(0, 10, null).map((held) => held.state)).toEqual(['active', 'active', 'scheduled'])
  expect(queue.lockNext(null)?.payload).toBe('active')
})

test('a full queue refuses by number and by size, and a batch as a whole', () => {
  const { queue, put } = setUp({ maxMessages: 2, maxBytes: 25 })
  const message = { payload: 'x', bytes: 10, messageId: null, sessionId: null, ttlMs: null, scheduledAt: null }
  put('a')
  expect(queue.refuses([message])).toBeNull()
  expect(queue.refuses([message, message])).toBe('full')
  expect(queue.refuses([{ ...message, bytes: 16 }])).toBe('full')
  queue.removeNext(null)
  expect(queue.refuses([message, message])).toBeNull()
})

test('dead letters push out the oldest rather than grow without end', () => {
  const { queue, dead, put } = setUp({ maxMessages: 2 })
  for (const payload of ['a', 'b', 'c']) {
    put(payload)
    queue.deadLetter(tokenOf(queue.lockNext(null)), { reason: '', description: '', properties: {} })
  }
  expect(payloads(dead)).toEqual(['b', 'c'])
})

test('a queue with sessions takes no message without one', () => {
  const { queue } = setUp({ requiresSession: true })
  const message = { payload: 'x', bytes: 1, messageId: null, ttlMs: null, scheduledAt: null }
  expect(queue.refuses([{ ...message, sessionId: null }])).toBe('session-required')
  expect(queue.refuses([{ ...message, sessionId: 's' }])).toBeNull()
})

test('a session is for one holder, who alone gets its messages', () => {
  const { queue, put } = setUp({ requiresSession: true })
  put('a', { sessionId: 's' })
  put('b', { sessionId: 't' })
  expect(queue.acceptSession('s', 'me')).toEqual({ id: 's', until: 11_000 })
  expect(queue.acceptSession('s', 'you')).toBe('taken')
  expect(queue.lockNext('s')).toMatchObject({ payload: 'a', lock: { until: 11_000 } })
  expect(queue.lockNext('s')).toBeNull()
})

test('the next session is that of the oldest waiting message which nobody holds', () => {
  const { queue, put } = setUp({ requiresSession: true })
  put('a', { sessionId: 's' })
  put('b', { sessionId: 't' })
  expect(queue.acceptSession(null, 'me')).toMatchObject({ id: 's' })
  expect(queue.acceptSession(null, 'you')).toMatchObject({ id: 't' })
  expect(queue.acceptSession(null, 'them')).toBe('none')
})

test('messages of a session stay locked while the session is renewed', () => {
  const { queue, put, wait } = setUp({ requiresSession: true })
  put('a', { sessionId: 's' })
  queue.acceptSession('s', 'me')
  const token = tokenOf(queue.lockNext('s'))
  for (let times = 0; times < 5; times += 1) {
    wait(900)
    expect(queue.renewSession('s', 'me')).not.toBeNull()
  }
  expect(queue.renewSession('s', 'you')).toBeNull()
  expect(queue.complete(token)).toBe('ok')
})

test('a session that runs out is lost with its messages, and their delivery counts', () => {
  const { queue, put, wait } = setUp({ requiresSession: true })
  put('a', { sessionId: 's' })
  queue.acceptSession('s', 'me')
  const token = tokenOf(queue.lockNext('s'))
  expect(wait(1000)).toEqual([{ id: 's', owner: 'me' }])
  expect(queue.complete(token)).toBe('lock-lost')
  queue.acceptSession('s', 'you')
  expect(queue.lockNext('s')).toMatchObject({ payload: 'a', deliveryCount: 1 })
})

test('a session that is given back frees its messages with their delivery count as it was', () => {
  const { queue, put } = setUp({ requiresSession: true })
  put('a', { sessionId: 's' })
  queue.acceptSession('s', 'me')
  queue.lockNext('s')
  queue.releaseSession('s', 'you')
  expect(queue.acceptSession('s', 'you')).toBe('taken')
  queue.releaseSession('s', 'me')
  queue.acceptSession('s', 'you')
  expect(queue.lockNext('s')).toMatchObject({ payload: 'a', deliveryCount: 0 })
})

test('the state of a session outlives its lock', () => {
  const { queue } = setUp({ requiresSession: true })
  queue.acceptSession('s', 'me')
  queue.setSessionState('s', Buffer.from('half way'))
  queue.releaseSession('s', 'me')
  expect(queue.sessionState('s')?.toString()).toBe('half way')
  expect(queue.sessionIds()).toEqual(['s'])
  queue.setSessionState('s', null)
  expect(queue.sessionIds()).toEqual([])
})

test('nothing is due in an idle queue', () => {
  const { queue, put } = setUp()
  expect(queue.nextDue()).toBeNull()
  put('a')
  expect(queue.nextDue()).toBeNull()
  queue.lockNext(null)
  expect(queue.nextDue()).toBe(11_000)
})
