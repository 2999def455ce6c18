import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openNamespace, within } from './namespace.ts'

const peekLock = { maxAutoLockRenewalDurationInMs: 0 }
const briefly = { maxWaitTimeInMs: 300 }

test('a message arrives with everything that it was sent with', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({
    body: { some: 'json' },
    messageId: 'm-1',
    subject: 'sub',
    contentType: 'application/json',
    correlationId: 'c-1',
    replyTo: 'answers',
    replyToSessionId: 'r-1',
    to: 'somewhere',
    timeToLive: 60_000,
    partitionKey: 'pk',
    applicationProperties: { text: 'x', small: 5, big: 5_000_000_000, negative: -5, real: 1.5, yes: true, at: new Date(1_000) },
  })
  const [message] = await client.createReceiver('q', peekLock).receiveMessages(1)
  expect(message).toMatchObject({
    body: { some: 'json' },
    messageId: 'm-1',
    subject: 'sub',
    contentType: 'application/json',
    correlationId: 'c-1',
    replyTo: 'answers',
    replyToSessionId: 'r-1',
    to: 'somewhere',
    timeToLive: 60_000,
    partitionKey: 'pk',
    deliveryCount: 0,
    state: 'active',
    applicationProperties: { text: 'x', small: 5, big: 5_000_000_000, negative: -5, real: 1.5, yes: true, at: 1_000 },
  })
  expect(message?.sequenceNumber?.toNumber()).toBe(1)
  expect(message?.lockToken).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(message?.lockedUntilUtc?.getTime()).toBeGreaterThan(Date.now())
  expect(Math.abs((message?.enqueuedTimeUtc?.getTime() ?? 0) - Date.now())).toBeLessThan(10_000)
})

test('what a test sees of a message are the very bytes of the wire', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: Buffer.from('raw'), applicationProperties: { n: 7 } })
  await sender.sendMessages([{ body: 'json' }, { body: 'too' }])
  const [single, ...batch] = azure.broker.received('q')
  expect(single?.format).toBe(0)
  // A data section holding vbin8 of three bytes, and a map value that is a smalluint.
  expect(single?.raw.subarray(-8).toString('hex')).toBe('005375a003' + Buffer.from('raw').toString('hex'))
  expect(single?.raw.includes(Buffer.from([0xa1, 0x01, 0x6e, 0x52, 0x07]))).toBe(true)
  expect(single?.message.application_properties).toEqual({ n: 7 })
  expect(batch.map((entry) => [entry.format, entry.message.body.content.toString()])).toEqual([
    [0x80013700, '"json"'],
    [0x80013700, '"too"'],
  ])
})

test('a batch keeps its order and is bounded by the size that the broker names', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', maxMessageBytes: 2000 }] })
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  const batch = await sender.createMessageBatch()
  expect(batch.maxSizeInBytes).toBe(2000)
  let added = 0
  while (batch.tryAddMessage({ body: `message ${added}` })) added += 1
  await sender.sendMessages(batch)
  const got = await client.createReceiver('q', { receiveMode: 'receiveAndDelete' }).receiveMessages(added, { maxWaitTimeInMs: 5_000 })
  expect(got.map((message) => message.body)).toEqual(Array.from({ length: added }, (_, at) => `message ${at}`))
})

test('the server refuses a message that is too large, in one frame and in many', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', maxMessageBytes: 2000 }] })
  const sender = azure.serviceBus().createSender('q')
  for (const bytes of [2_500, 1_000_000]) {
    await expect(sender.sendMessages({ body: Buffer.alloc(bytes) })).rejects.toMatchObject({ code: 'MessageSizeExceeded' })
  }
  await sender.sendMessages({ body: 'small' })
  expect(azure.broker.received('q')).toHaveLength(1)
})

test('a message of many frames arrives whole', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', maxMessageBytes: 2_000_000 }] })
  const client = azure.serviceBus()
  const body = Buffer.alloc(1_000_000, 'abcdefghij')
  await client.createSender('q').sendMessages({ body })
  const [message] = await client.createReceiver('q', peekLock).receiveMessages(1)
  expect(body.equals(message?.body)).toBe(true)
})

test('complete removes, abandon gives back with a higher count and changed properties, in that order of delivery', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages([{ body: 1 }, { body: 2 }])
  const receiver = client.createReceiver('q', peekLock)
  const [first, second] = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  if (first === undefined || second === undefined) throw new Error('two messages were expected')
  await receiver.abandonMessage(first, { why: 'later' })
  await receiver.completeMessage(second)
  const again = await receiver.receiveMessages(2, { maxWaitTimeInMs: 1_000 })
  expect(again.map((message) => [message.body, message.deliveryCount, message.applicationProperties])).toEqual([[1, 1, { why: 'later' }]])
})

test('a dead letter tells reason, description and properties, and can be completed in its sub-queue', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 'x', applicationProperties: { old: 1 } })
  const receiver = client.createReceiver('q', peekLock)
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  await receiver.deadLetterMessage(message, { deadLetterReason: 'malformed', deadLetterErrorDescription: 'no JSON', extra: 'more' })
  const dead = client.createReceiver('q', { ...peekLock, subQueueType: 'deadLetter' })
  const [letter] = await dead.receiveMessages(1)
  if (letter === undefined) throw new Error('a dead letter was expected')
  expect(letter).toMatchObject({ body: 'x', deadLetterReason: 'malformed', deadLetterErrorDescription: 'no JSON', deadLetterSource: 'q' })
  expect(letter.applicationProperties).toMatchObject({ old: 1, extra: 'more', DeadLetterReason: 'malformed' })
  expect(azure.broker.count('q/$DeadLetterQueue')).toBe(1)
  await dead.completeMessage(letter)
  expect([azure.broker.count('q'), azure.broker.count('q/$DeadLetterQueue')]).toEqual([0, 0])
})

test('after the last permitted delivery a message is a dead letter', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', maxDeliveryCount: 2 }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 'x' })
  const receiver = client.createReceiver('q', peekLock)
  for (let times = 0; times < 2; times += 1) {
    const [message] = await receiver.receiveMessages(1)
    if (message === undefined) throw new Error('a message was expected')
    await receiver.abandonMessage(message)
  }
  const [letter] = await client.createReceiver('q', { ...peekLock, subQueueType: 'deadLetter' }).receiveMessages(1)
  expect(letter).toMatchObject({ body: 'x', deadLetterReason: 'MaxDeliveryCountExceeded', deliveryCount: 2 })
})

test('a deferred message is had by its number alone, and settled through management', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages([{ body: 'defer me' }, { body: 'bury me' }])
  const receiver = client.createReceiver('q', peekLock)
  const messages = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  for (const message of messages) await receiver.deferMessage(message, { deferred: true })
  expect(await receiver.receiveMessages(1, briefly)).toEqual([])
  const numbers = messages.flatMap((message) => message.sequenceNumber ?? [])
  const [first, second] = await receiver.receiveDeferredMessages(numbers)
  if (first === undefined || second === undefined) throw new Error('two messages were expected')
  expect(first).toMatchObject({ body: 'defer me', state: 'deferred', applicationProperties: { deferred: true } })
  await receiver.completeMessage(first)
  await receiver.deadLetterMessage(second, { deadLetterReason: 'r', deadLetterErrorDescription: 'd' })
  expect([azure.broker.count('q'), azure.broker.count('q/$DeadLetterQueue')]).toEqual([0, 1])
  await expect(receiver.receiveDeferredMessages(numbers)).rejects.toMatchObject({ code: 'MessageNotFound' })
})

test('a lock that ran out cannot complete, and the message comes to the next receiver', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', lockSeconds: 0.2 }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 'x' })
  const receiver = client.createReceiver('q', peekLock)
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  const [again] = await client.createReceiver('q', peekLock).receiveMessages(1)
  expect(again?.deliveryCount).toBe(1)
  await expect(receiver.completeMessage(message)).rejects.toMatchObject({ code: 'MessageLockLost' })
  await expect(receiver.renewMessageLock(message)).rejects.toMatchObject({ code: 'MessageLockLost' })
})

test('a renewed lock outlives its first time', async () => {
  let now = Date.now()
  await using azure = await openNamespace({ queues: [{ name: 'q', lockSeconds: 30 }] }, { now: () => now })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 'x' })
  const receiver = client.createReceiver('q', peekLock)
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  now += 20_000
  expect((await receiver.renewMessageLock(message)).getTime()).toBe(now + 30_000)
  now += 20_000
  azure.broker.tick()
  await receiver.completeMessage(message)
  expect(azure.broker.count('q')).toBe(0)
})

test('a scheduled message is delivered at its time, one that was called off never', async () => {
  let now = Date.now()
  await using azure = await openNamespace({ queues: [{ name: 'q' }] }, { now: () => now })
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  const at = new Date(now + 60_000)
  const numbers = await sender.scheduleMessages([{ body: 'one' }, { body: 'two' }], at)
  await sender.sendMessages({ body: 'three', scheduledEnqueueTimeUtc: at })
  await sender.cancelScheduledMessages(numbers.slice(0, 1))
  await expect(sender.cancelScheduledMessages(numbers.slice(0, 1))).rejects.toMatchObject({ code: 'MessageNotFound' })
  const receiver = client.createReceiver('q', { receiveMode: 'receiveAndDelete' })
  expect((await receiver.peekMessages(5)).map((message) => [message.body, message.state])).toEqual([
    ['two', 'scheduled'],
    ['three', 'scheduled'],
  ])
  expect(await receiver.receiveMessages(1, briefly)).toEqual([])
  now += 60_000
  azure.broker.tick()
  const got = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  expect(got.map((message) => message.body)).toEqual(['two', 'three'])
  expect(got[0]?.enqueuedTimeUtc).toEqual(at)
})

test('a waiting receiver gets a scheduled message without being asked again', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages({ body: 'x', scheduledEnqueueTimeUtc: new Date(Date.now() + 200) })
  const [message] = await client.createReceiver('q', peekLock).receiveMessages(1, { maxWaitTimeInMs: 10_000 })
  expect(message?.body).toBe('x')
})

test('an expired message is a dead letter where the queue says so', async () => {
  let now = Date.now()
  await using azure = await openNamespace(
    {
      queues: [
        { name: 'keeps', deadLetterOnExpiry: true },
        { name: 'drops', defaultTtlSeconds: 1 },
      ],
    },
    { now: () => now },
  )
  const client = azure.serviceBus()
  await client.createSender('keeps').sendMessages({ body: 'x', timeToLive: 1000 })
  await client.createSender('drops').sendMessages({ body: 'x' })
  now += 1000
  azure.broker.tick()
  expect([azure.broker.count('keeps'), azure.broker.count('drops'), azure.broker.count('drops/$DeadLetterQueue')]).toEqual([0, 0, 0])
  const [letter] = await client.createReceiver('keeps', { subQueueType: 'deadLetter', ...peekLock }).receiveMessages(1)
  expect(letter?.deadLetterReason).toBe('TTLExpiredException')
})

test('a repeated message id is accepted and dropped, within a batch, across batches and single sends', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', duplicateDetectionSeconds: 60 }] })
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  await sender.sendMessages([
    { body: 1, messageId: 'a' },
    { body: 2, messageId: 'a' },
    { body: 3, messageId: 'b' },
  ])
  await sender.sendMessages([
    { body: 4, messageId: 'b' },
    { body: 5, messageId: 'c' },
  ])
  await sender.sendMessages({ body: 6, messageId: 'c' })
  const got = await client.createReceiver('q').peekMessages(10)
  expect(got.map((message) => message.body)).toEqual([1, 3, 5])
  expect(azure.broker.received('q')).toHaveLength(6)
})

test('peek shows messages without locking them and goes on where it stopped', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }])
  const receiver = client.createReceiver('q', peekLock)
  const first = await receiver.peekMessages(2)
  expect(first.map((message) => message.body)).toEqual([1, 2])
  expect((await receiver.peekMessages(2)).map((message) => message.body)).toEqual([3])
  expect(await receiver.peekMessages(2)).toEqual([])
  const { sequenceNumber: fromSequenceNumber } = first[1] ?? {}
  if (fromSequenceNumber === undefined) throw new Error('a number was expected')
  expect((await receiver.peekMessages(2, { fromSequenceNumber })).map((message) => message.body)).toEqual([2, 3])
  expect(await receiver.receiveMessages(3, { maxWaitTimeInMs: 5_000 })).toHaveLength(3)
})

test('receiving nothing ends on time, and a drained receiver still gets what comes later', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  const receiver = client.createReceiver('q', peekLock)
  for (let times = 0; times < 3; times += 1) expect(await receiver.receiveMessages(10, { maxWaitTimeInMs: 50 })).toEqual([])
  await client.createSender('q').sendMessages({ body: 'x' })
  expect(await receiver.receiveMessages(10, { maxWaitTimeInMs: 5_000 })).toHaveLength(1)
})

test('a subscription of the SDK gets messages as they come, completes them, and leaves no link behind', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  const got: unknown[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const receiver = client.createReceiver('q')
  receiver.subscribe(
    {
      processMessage: async (message) => {
        got.push(message.body)
        if (got.length === 20) resolve()
      },
      processError: async ({ error }) => reject(error),
    },
    { maxConcurrentCalls: 4 },
  )
  const sender = client.createSender('q')
  for (let at = 0; at < 20; at += 1) await sender.sendMessages({ body: at, messageId: `m-${at}` })
  await promise
  await receiver.close()
  expect(got).toEqual(Array.from({ length: 20 }, (_, at) => at))
  for (let waited = 0; azure.broker.count('q') > 0 && waited < 2_000; waited += 10) await sleep(10)
  expect(azure.broker.count('q')).toBe(0)
  await client.close()
  for (let waited = 0; azure.broker.connections > 0 && waited < 2_000; waited += 10) await sleep(10)
  expect([azure.broker.connections, azure.broker.links]).toEqual([0, 0])
})

test('two receivers of a queue share its messages, none twice', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  await client.createSender('q').sendMessages(Array.from({ length: 20 }, (_, at) => ({ body: at })))
  const batches = await Promise.all([0, 1].map(() => client.createReceiver('q', peekLock).receiveMessages(10, { maxWaitTimeInMs: 5_000 })))
  const bodies = batches.flat().map((message) => Number(message.body))
  expect(bodies.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at))
})

test('a full queue refuses with the quota error of Azure', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q', maxMessages: 1 }] })
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 1 })
  await expect(sender.sendMessages({ body: 2 })).rejects.toMatchObject({ code: 'QuotaExceeded' })
})

test('an entity that is not there is not found, in any spelling one that is', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'Approvals' }] })
  const client = azure.serviceBus()
  await expect(client.createSender('nowhere').sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'MessagingEntityNotFound' })
  await expect(client.createReceiver('nowhere').receiveMessages(1, briefly)).rejects.toMatchObject({ code: 'MessagingEntityNotFound' })
  await client.createSender('approvals').sendMessages({ body: 1 })
  expect(await azure.broker.waitForMessages('APPROVALS', 1, { signal: within() })).toHaveLength(1)
})
