import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openNamespace } from './namespace.ts'

const entities = { queues: [{ name: 'q', requiresSession: true, lockSeconds: 30 }] }
const manual = { maxAutoLockRenewalDurationInMs: 0 }

test('a named session gives its own messages in order and nobody else’s', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  await sender.sendMessages([
    { body: 1, sessionId: 'a' },
    { body: 2, sessionId: 'b' },
    { body: 3, sessionId: 'a' },
  ])
  const receiver = await client.acceptSession('q', 'a', manual)
  expect(receiver.sessionId).toBe('a')
  expect(receiver.sessionLockedUntilUtc.getTime()).toBeGreaterThan(Date.now() + 20_000)
  const got = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  expect(got.map((message) => [message.body, message.sessionId])).toEqual([
    [1, 'a'],
    [3, 'a'],
  ])
  for (const message of got) await receiver.completeMessage(message)
  expect(azure.broker.count('q')).toBe(1)
})

test('a session can be taken before it has messages, and gets them as they come', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const receiver = await client.acceptSession('q', 'vm-1', manual)
  const waiting = receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 })
  await client.createSender('q').sendMessages({ body: 'x', sessionId: 'vm-1' })
  expect((await waiting).map((message) => message.body)).toEqual(['x'])
})

test('the next session is one that has messages and that nobody holds', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages([
    { body: 1, sessionId: 'a' },
    { body: 2, sessionId: 'b' },
  ])
  const first = await client.acceptNextSession('q', manual)
  const second = await client.acceptNextSession('q', manual)
  expect([first.sessionId, second.sessionId]).toEqual(['a', 'b'])
})

test('a wish for the next session waits until one comes', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const waiting = client.acceptNextSession('q', manual)
  const sender = client.createSender('q')
  await sender.sendMessages({ body: 1, sessionId: 'late' })
  const receiver = await waiting
  expect(receiver.sessionId).toBe('late')
  expect(await receiver.receiveMessages(1)).toHaveLength(1)
})

test('a wish for the next session ends in a time-out when none comes', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus({ retryOptions: { maxRetries: 0, timeoutInMs: 300 } })
  await expect(client.acceptNextSession('q', manual)).rejects.toMatchObject({ code: 'ServiceTimeout' })
})

test('a client that goes away while it waits takes no session with it', async () => {
  await using azure = await openNamespace(entities)
  const waiting = azure.serviceBus().acceptNextSession('q', manual)
  const ended = waiting.then(
    () => 'a session',
    () => 'no session',
  )
  for (let waited = 0; azure.broker.links < 3 && waited < 2_000; waited += 10) await sleep(10)
  azure.broker.faults.dropConnections()
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 1, sessionId: 'a' })
  expect((await client.acceptNextSession('q', manual)).sessionId).toBe('a')
  expect(await ended).toBe('no session')
})

test('a session that another holds cannot be had until it is given back', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const holder = await client.acceptSession('q', 'a', manual)
  await expect(client.acceptSession('q', 'a', manual)).rejects.toMatchObject({ code: 'SessionCannotBeLocked' })
  await holder.close()
  expect((await client.acceptSession('q', 'a', manual)).sessionId).toBe('a')
})

test('a session that is given back frees its messages without counting the delivery', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 1, sessionId: 'a' })
  const first = await client.acceptSession('q', 'a', manual)
  expect(await first.receiveMessages(1)).toHaveLength(1)
  await first.close()
  const second = await client.acceptSession('q', 'a', manual)
  const [message] = await second.receiveMessages(1)
  expect(message?.deliveryCount).toBe(0)
})

test('a broken connection gives the session back as well', async () => {
  await using azure = await openNamespace(entities)
  await azure.serviceBus().acceptSession('q', 'a', manual)
  azure.broker.faults.dropConnections()
  const other = await azure.serviceBus().acceptSession('q', 'a', manual)
  expect(other.sessionId).toBe('a')
})

test('session state is kept from holder to holder and read only by the holder', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const first = await client.acceptSession('q', 'a', manual)
  expect(await first.getSessionState()).toBeNull()
  await first.setSessionState({ step: 2 })
  await first.close()
  const second = await client.acceptSession('q', 'a', manual)
  expect(await second.getSessionState()).toEqual({ step: 2 })
})

test('a session lock is renewed, and with it the locks of its messages', async () => {
  let now = Date.now()
  await using azure = await openNamespace(entities, { now: () => now })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 1, sessionId: 'a' })
  const receiver = await client.acceptSession('q', 'a', manual)
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  now += 20_000
  expect((await receiver.renewSessionLock()).getTime()).toBe(now + 30_000)
  now += 20_000
  azure.broker.tick()
  await receiver.completeMessage(message)
  expect(azure.broker.count('q')).toBe(0)
})

test('a session lock that runs out closes the receiver, and the messages come back with a higher count', async () => {
  let now = Date.now()
  await using azure = await openNamespace(entities, { now: () => now })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 1, sessionId: 'a' })
  const receiver = await client.acceptSession('q', 'a', manual)
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  now += 30_000
  azure.broker.tick()
  for (let waited = 0; !receiver.isClosed && waited < 5_000; waited += 10) await sleep(10)
  await expect(receiver.completeMessage(message)).rejects.toMatchObject({ code: 'SessionLockLost' })
  expect(receiver.isClosed).toBe(true)
  const next = await client.acceptSession('q', 'a', manual)
  const [again] = await next.receiveMessages(1)
  expect(again?.deliveryCount).toBe(1)
})

test('deferred messages and dead letters work in a session as elsewhere', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages([
    { body: 'defer', sessionId: 'a' },
    { body: 'bury', sessionId: 'a' },
  ])
  const receiver = await client.acceptSession('q', 'a', manual)
  const [first, second] = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  if (first?.sequenceNumber === undefined || second === undefined) throw new Error('two messages were expected')
  await receiver.deferMessage(first)
  await receiver.deadLetterMessage(second, { deadLetterReason: 'why', deadLetterErrorDescription: 'what' })
  const [deferred] = await receiver.receiveDeferredMessages(first.sequenceNumber)
  if (deferred === undefined) throw new Error('a deferred message was expected')
  await receiver.completeMessage(deferred)
  const [letter] = await client.createReceiver('q', { ...manual, subQueueType: 'deadLetter' }).receiveMessages(1)
  expect(letter).toMatchObject({ body: 'bury', sessionId: 'a', deadLetterReason: 'why' })
  expect(azure.broker.count('q')).toBe(0)
})

test('a session queue takes no message without a session and no receiver without one, a plain queue no session receiver', async () => {
  await using azure = await openNamespace({ queues: [...entities.queues, { name: 'plain' }] })
  const client = azure.serviceBus()
  await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toThrow(/SessionId was not set/)
  await expect(client.createReceiver('q', manual).receiveMessages(1, { maxWaitTimeInMs: 500 })).rejects.toThrow(/requires sessions/)
  await expect(client.acceptSession('plain', 'a', manual)).rejects.toMatchObject({ name: 'ServiceBusError' })
})
