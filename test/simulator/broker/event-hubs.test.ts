import { earliestEventPosition, latestEventPosition, type ReceivedEventData } from '@azure/event-hubs'
import { expect, test } from 'vitest'
import { partitionOfKey } from '../../../src/simulator/broker/partition-key.ts'
import { openNamespace, readEvents, within } from './namespace.ts'

const entities = { eventHubs: [{ name: 'hub', partitions: 4, consumerGroups: ['siem'] }] }
const bodies = (events: readonly ReceivedEventData[]): unknown[] => events.map((event) => event.body)

test('events arrive with their properties, and with offset, number, time and key of the broker', async () => {
  await using azure = await openNamespace(entities)
  await azure
    .producer('hub')
    .sendBatch(
      [
        { body: { a: 1 }, properties: { p: 'q', n: 5 }, messageId: 'm', correlationId: 'c', contentType: 'application/json' },
        { body: 'two' },
      ],
      { partitionId: '2' },
    )
  const [first, second] = await readEvents(azure.consumer('hub'), '2', earliestEventPosition, 2)
  expect(first).toMatchObject({
    body: { a: 1 },
    properties: { p: 'q', n: 5 },
    messageId: 'm',
    correlationId: 'c',
    contentType: 'application/json',
    sequenceNumber: 0,
    offset: '0',
  })
  expect(second).toMatchObject({ body: 'two', sequenceNumber: 1 })
  expect(Number(second?.offset)).toBeGreaterThan(1)
  expect(Math.abs((first?.enqueuedTimeUtc.getTime() ?? 0) - Date.now())).toBeLessThan(10_000)
})

test('every send has the batch format, also of one event, and the bytes of each event are kept', async () => {
  await using azure = await openNamespace(entities)
  await azure.producer('hub').sendBatch([{ body: Buffer.from('raw') }])
  const [event] = await azure.broker.waitForMessages('hub', 1, { signal: within() })
  expect(event?.format).toBe(0x80013700)
  expect(event?.raw.subarray(-8).toString('hex')).toBe('005375a003' + Buffer.from('raw').toString('hex'))
})

test('the hub and its partitions describe themselves', async () => {
  await using azure = await openNamespace(entities)
  const producer = azure.producer('hub')
  expect(await producer.getEventHubProperties()).toMatchObject({ name: 'hub', partitionIds: ['0', '1', '2', '3'] })
  expect(await producer.getPartitionIds()).toEqual(['0', '1', '2', '3'])
  expect(await producer.getPartitionProperties('1')).toMatchObject({
    isEmpty: true,
    lastEnqueuedSequenceNumber: -1,
    lastEnqueuedOffset: '-1',
  })
  await producer.sendBatch([{ body: 1 }, { body: 2 }], { partitionId: '1' })
  expect(await producer.getPartitionProperties('1')).toMatchObject({
    eventHubName: 'hub',
    partitionId: '1',
    isEmpty: false,
    beginningSequenceNumber: 0,
    lastEnqueuedSequenceNumber: 1,
  })
  await expect(producer.getPartitionProperties('9')).rejects.toMatchObject({ code: 'MessagingEntityNotFoundError' })
})

test('one key always goes to one partition, and is told to the reader', async () => {
  await using azure = await openNamespace(entities)
  const producer = azure.producer('hub')
  for (const body of [1, 2, 3]) await producer.sendBatch([{ body }], { partitionKey: 'vm-7' })
  const events = await readEvents(azure.consumer('hub'), String(partitionOfKey('vm-7', 4)), earliestEventPosition, 3)
  expect(events.map((event) => [event.body, event.partitionKey])).toEqual([
    [1, 'vm-7'],
    [2, 'vm-7'],
    [3, 'vm-7'],
  ])
})

test('keys hash as they do in the SDK of Azure, whatever their length', () => {
  // From mapPartitionKeyToId of @azure/event-hubs 6.0.4.
  const keys = ['', 'a', 'vm-7', 'twelve bytes', 'thirteen byte', 'x'.repeat(24), 'ü', '/subscriptions/1/resourceGroups/rg']
  expect(keys.map((key) => partitionOfKey(key, 32))).toEqual([0, 28, 0, 14, 1, 29, 21, 2])
})

test('sends without a key take the partitions in turns', async () => {
  await using azure = await openNamespace(entities)
  const producer = azure.producer('hub')
  for (let at = 0; at < 8; at += 1) await producer.sendBatch([{ body: at }])
  const lasts = await Promise.all(['0', '1', '2', '3'].map((id) => producer.getPartitionProperties(id)))
  expect(lasts.map((partition) => partition.lastEnqueuedSequenceNumber)).toEqual([1, 1, 1, 1])
})

test('a reader starts where it wants: offset, number or time, with or without the event itself', async () => {
  let now = Date.parse('2030-01-01T00:00:00Z')
  await using azure = await openNamespace(entities, { now: () => now, requireToken: false })
  const producer = azure.producer('hub')
  for (const body of ['a', 'b', 'c']) {
    await producer.sendBatch([{ body }], { partitionId: '0' })
    now += 1000
  }
  const consumer = azure.consumer('hub')
  const all = await readEvents(consumer, '0', earliestEventPosition, 3)
  expect(bodies(all)).toEqual(['a', 'b', 'c'])
  const { offset = '', sequenceNumber = 0, enqueuedTimeUtc = new Date() } = all[1] ?? {}
  expect(bodies(await readEvents(consumer, '0', { offset }, 1))).toEqual(['c'])
  expect(bodies(await readEvents(consumer, '0', { offset, isInclusive: true }, 2))).toEqual(['b', 'c'])
  expect(bodies(await readEvents(consumer, '0', { sequenceNumber }, 1))).toEqual(['c'])
  expect(bodies(await readEvents(consumer, '0', { sequenceNumber, isInclusive: true }, 2))).toEqual(['b', 'c'])
  expect(bodies(await readEvents(consumer, '0', { enqueuedOn: enqueuedTimeUtc }, 1))).toEqual(['c'])
  expect(bodies(await readEvents(consumer, '0', { enqueuedOn: new Date(enqueuedTimeUtc.getTime() - 1) }, 2))).toEqual(['b', 'c'])
})

test('a reader at the end gets only what comes later', async () => {
  await using azure = await openNamespace(entities)
  const producer = azure.producer('hub')
  await producer.sendBatch([{ body: 'old' }], { partitionId: '0' })
  const reading = readEvents(azure.consumer('hub'), '0', latestEventPosition, 1, { maxWaitTimeInSeconds: 0.2 })
  const sending = (async () => {
    for (let linked = false; !linked;) {
      await producer.sendBatch([{ body: 'new' }], { partitionId: '0' })
      linked = await Promise.race([reading.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, 50, false))])
    }
  })()
  const [event] = await reading
  await sending
  expect(event?.body).toBe('new')
})

test('consumer groups read independently, one that is not declared not at all', async () => {
  await using azure = await openNamespace(entities)
  await azure.producer('hub').sendBatch([{ body: 1 }], { partitionId: '0' })
  for (const group of ['$Default', 'siem', 'SIEM']) {
    expect(await readEvents(azure.consumer('hub', group), '0', earliestEventPosition, 1)).toHaveLength(1)
  }
  await expect(readEvents(azure.consumer('hub', 'other'), '0', earliestEventPosition, 1)).rejects.toThrow(/could not be found/)
})

test('a reader with a higher epoch takes the partition over, one with a lower is not let in', async () => {
  await using azure = await openNamespace(entities)
  const { promise: lost, resolve } = Promise.withResolvers<string>()
  const { promise: ready, resolve: started } = Promise.withResolvers<void>()
  const low = azure.consumer('hub').subscribe(
    '0',
    {
      processEvents: async () => started(),
      processError: async (error) => resolve('code' in error ? error.code : error.message),
    },
    { startPosition: earliestEventPosition, ownerLevel: 1, maxWaitTimeInSeconds: 0.05 },
  )
  await azure.producer('hub').sendBatch([{ body: 1 }], { partitionId: '0' })
  await ready
  expect(await readEvents(azure.consumer('hub'), '0', earliestEventPosition, 1, { ownerLevel: 2 })).toHaveLength(1)
  expect(await lost).toBe('ReceiverDisconnectedError')
  await low.close()
})

test('where somebody has an epoch, a reader without one is refused', async () => {
  await using azure = await openNamespace(entities)
  await azure.producer('hub').sendBatch([{ body: 1 }], { partitionId: '0' })
  const { promise: ready, resolve: started } = Promise.withResolvers<void>()
  const owner = azure
    .consumer('hub')
    .subscribe(
      '0',
      { processEvents: async (events) => (events.length > 0 ? started() : undefined), processError: async () => {} },
      { startPosition: earliestEventPosition, ownerLevel: 1, maxWaitTimeInSeconds: 0.05 },
    )
  await ready
  await expect(readEvents(azure.consumer('hub'), '0', earliestEventPosition, 1)).rejects.toMatchObject({
    code: 'ReceiverDisconnectedError',
  })
  await owner.close()
})

test('a reader learns the end of its partition with each event when it asks for that', async () => {
  await using azure = await openNamespace(entities)
  await azure.producer('hub').sendBatch([{ body: 1 }, { body: 2 }], { partitionId: '0' })
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  const subscription = azure.consumer('hub').subscribe(
    '0',
    {
      processEvents: async (events, context) =>
        events.length > 0 ? resolve(context.lastEnqueuedEventProperties?.sequenceNumber) : undefined,
      processError: async (error) => reject(error),
    },
    { startPosition: earliestEventPosition, trackLastEnqueuedEventProperties: true, maxWaitTimeInSeconds: 0.05 },
  )
  expect(await promise).toBe(1)
  await subscription.close()
})

test('old events are dropped by number, and a reader from the start begins at the oldest that is left', async () => {
  await using azure = await openNamespace({ eventHubs: [{ name: 'hub', partitions: 1, retainedEvents: 3 }] })
  const producer = azure.producer('hub')
  await producer.sendBatch([1, 2, 3, 4, 5].map((body) => ({ body })))
  expect(await producer.getPartitionProperties('0')).toMatchObject({ beginningSequenceNumber: 2, lastEnqueuedSequenceNumber: 4 })
  expect(bodies(await readEvents(azure.consumer('hub'), '0', earliestEventPosition, 3))).toEqual([3, 4, 5])
})

test('a batch fills up to the size that the broker names, and a larger one is refused by the server', async () => {
  await using azure = await openNamespace({ eventHubs: [{ name: 'hub', maxMessageBytes: 3000 }] })
  const producer = azure.producer('hub')
  const batch = await producer.createBatch()
  expect(batch.maxSizeInBytes).toBe(3000)
  while (batch.tryAdd({ body: 'x'.repeat(100) })) continue
  await producer.sendBatch(batch)
  expect(azure.broker.received('hub')).toHaveLength(batch.count)
})

test('a hub that is not there is not found', async () => {
  await using azure = await openNamespace(entities)
  await expect(azure.producer('nowhere').sendBatch([{ body: 1 }])).rejects.toThrow(/could not be found/)
  await expect(azure.producer('hub').sendBatch([{ body: 1 }], { partitionId: '17' })).rejects.toThrow(/could not be found/)
})
