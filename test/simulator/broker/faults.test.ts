import { connect } from 'node:net'
import { once } from 'node:events'
import { earliestEventPosition } from '@azure/event-hubs'
import type { ServiceBusSender } from '@azure/service-bus'
import { expect, test } from 'vitest'
import { openNamespace, readEvents, within } from './namespace.ts'

const entities = { queues: [{ name: 'q' }, { name: 'other' }], eventHubs: [{ name: 'hub', partitions: 1 }] }

/** A send that is given up after a while, as every send of the forwarder is. */
const sendFor = (sender: ServiceBusSender, milliseconds: number, body: unknown = 'x') =>
  sender.sendMessages({ body }, { abortSignal: AbortSignal.timeout(milliseconds) })

test('a busy server rejects as many sends as it was told, in both SDKs, and then takes them again', async () => {
  await using azure = await openNamespace(entities)
  const fault = azure.broker.faults.serverBusy({ times: 2 })
  const sender = azure.serviceBus().createSender('q')
  await expect(sender.sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'ServiceBusy' })
  await expect(azure.producer('hub').sendBatch([{ body: 1 }])).rejects.toMatchObject({ code: 'ServerBusyError' })
  await sender.sendMessages({ body: 2 })
  expect(fault.hits).toBe(2)
  expect(azure.broker.received('q').map((entry) => entry.message.body.content.toString())).toEqual(['2'])
})

test('a fault of some seconds ends by the clock, and of one entity leaves the others alone', async () => {
  let now = Date.now()
  await using azure = await openNamespace(entities, { now: () => now })
  azure.broker.faults.serverBusy({ entity: 'Q', seconds: 10 })
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  await client.createSender('other').sendMessages({ body: 1 })
  await expect(sender.sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'ServiceBusy' })
  now += 10_000
  await sender.sendMessages({ body: 2 })
})

test('a quota that is used up, and any other condition, come as they are set', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  azure.broker.faults.resourceLimitExceeded({ times: 1 })
  await expect(sender.sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'QuotaExceeded', retryable: false })
  azure.broker.faults.rejectSends({ condition: 'amqp:internal-error', description: 'oh' }, { times: 1 })
  await expect(sender.sendMessages({ body: 1 })).rejects.toMatchObject({ retryable: true, message: expect.stringContaining('oh') })
})

test('a send that is never answered waits for its caller, who may find it stored all the same', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  const lost = azure.broker.faults.ignoreSends({ times: 1 })
  await expect(sendFor(sender, 200)).rejects.toMatchObject({ name: 'AbortError' })
  expect([lost.hits, azure.broker.count('q')]).toEqual([1, 0])
  azure.broker.faults.ignoreSends({ times: 1, stored: true })
  await expect(sendFor(sender, 200)).rejects.toMatchObject({ name: 'AbortError' })
  expect(azure.broker.count('q')).toBe(1)
})

test('a connection that breaks in the middle of a send is not noticed by it; the next send connects anew', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  azure.broker.faults.dropOnSend({ times: 1, stored: true })
  await expect(sendFor(sender, 300, 'first')).rejects.toMatchObject({ name: 'AbortError' })
  await sendFor(sender, 5_000, 'second')
  expect(azure.broker.count('q')).toBe(2)
})

test('a link that is detached in the middle of a send leaves the send waiting; the next one attaches anew', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  azure.broker.faults.detachOnSend({ times: 1 })
  await expect(sendFor(sender, 300)).rejects.toMatchObject({ name: 'AbortError' })
  await sendFor(sender, 5_000)
  expect(azure.broker.count('q')).toBe(1)
})

test('after every connection is broken both SDKs go on by themselves', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  const producer = azure.producer('hub')
  await sender.sendMessages({ body: 1 })
  await producer.sendBatch([{ body: 1 }])
  expect(azure.broker.faults.dropConnections()).toBe(2)
  await expect.poll(() => azure.broker.connections, { timeout: 5_000 }).toBe(0)
  await sender.sendMessages({ body: 2 })
  await producer.sendBatch([{ body: 2 }])
  expect([azure.broker.received('q').length, azure.broker.received('hub').length]).toEqual([2, 2])
})

test('detached links are attached again by the next send', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 1 })
  expect(azure.broker.faults.detachLinks('q')).toBe(1)
  expect(azure.broker.faults.detachLinks('other')).toBe(0)
  await expect
    .poll(
      () =>
        sendFor(sender, 1_000).then(
          () => 'sent',
          () => 'failed',
        ),
      { timeout: 5_000 },
    )
    .toBe('sent')
})

test('a disabled entity is fatal for senders and receivers until it is enabled', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const fault = azure.broker.faults.disableEntity('q')
  await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'MessagingEntityDisabled' })
  await expect(client.createReceiver('q').receiveMessages(1, { maxWaitTimeInMs: 500 })).rejects.toMatchObject({
    code: 'MessagingEntityDisabled',
  })
  fault.clear()
  await client.createSender('q').sendMessages({ body: 1 })
})

test('tokens and links are refused as unauthorized until that is cleared', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const fault = azure.broker.faults.unauthorized({ entity: 'q' })
  await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'UnauthorizedAccess' })
  await client.createSender('other').sendMessages({ body: 1 })
  fault.clear()
  await client.createSender('q').sendMessages({ body: 1 })
})

test('a slow broker answers late, but answers', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 1 })
  azure.broker.faults.slow(300)
  const before = performance.now()
  await sender.sendMessages({ body: 2 })
  expect(performance.now() - before).toBeGreaterThan(290)
})

test('a frozen broker answers nobody, old or new, and works off what it was sent when it thaws', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 'before' })
  azure.broker.faults.freeze()
  const waiting = sendFor(sender, 10_000, 'during')
  const newcomer = azure.serviceBus().createSender('other')
  await expect(sendFor(newcomer, 300)).rejects.toMatchObject({ name: 'AbortError' })
  expect([azure.broker.count('q'), azure.broker.connections]).toEqual([1, 1])
  azure.broker.faults.thaw()
  await waiting
  expect(azure.broker.count('q')).toBe(2)
})

test('a refused connection fails at once in Service Bus, and works again later', async () => {
  await using azure = await openNamespace(entities)
  await azure.broker.faults.refuseConnections()
  const sender = azure.serviceBus().createSender('q')
  await expect(sender.sendMessages({ body: 1 })).rejects.toThrow(/ECONNREFUSED/)
  await azure.broker.faults.acceptConnections()
  await sender.sendMessages({ body: 2 })
})

test('a restart keeps the port, the messages and the events, and both SDKs find it again', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  const producer = azure.producer('hub')
  await sender.sendMessages({ body: 'before' })
  await producer.sendBatch([{ body: 'before' }])
  const { port } = azure.broker
  await azure.broker.restart()
  expect(azure.broker.port).toBe(port)
  await expect.poll(() => azure.broker.connections, { timeout: 5_000 }).toBe(0)
  await sender.sendMessages({ body: 'after' })
  await producer.sendBatch([{ body: 'after' }])
  const events = await readEvents(azure.consumer('hub'), '0', earliestEventPosition, 2)
  expect(events.map((event) => event.body)).toEqual(['before', 'after'])
  const messages = await client.createReceiver('q').receiveMessages(2, { maxWaitTimeInMs: 5_000 })
  expect(messages.map((message) => message.body)).toEqual(['before', 'after'])
})

test('a subscription of the SDK lives through a restart', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus({ retryOptions: { maxRetries: 3, retryDelayInMs: 50, timeoutInMs: 5_000 } })
  const got: unknown[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  client.createReceiver('q', { maxAutoLockRenewalDurationInMs: 0 }).subscribe({
    processMessage: async (message) => {
      got.push(message.body)
      if (got.includes('after')) resolve()
    },
    processError: async () => {},
  })
  const other = azure.serviceBus().createSender('q')
  await other.sendMessages({ body: 'before' })
  await azure.broker.restart()
  const again = azure.serviceBus().createSender('q')
  await again.sendMessages({ body: 'after' })
  await promise
  expect(got).toContain('before')
})

test('clearing the faults ends all of them', async () => {
  await using azure = await openNamespace(entities)
  const { faults } = azure.broker
  faults.serverBusy()
  faults.disableEntity('q')
  faults.unauthorized()
  faults.freeze()
  await faults.refuseConnections()
  await faults.clear()
  await azure.serviceBus().createSender('q').sendMessages({ body: 1 })
  expect(azure.broker.count('q')).toBe(1)
})

test('a stopped broker refuses connections and a started one has the same port', async () => {
  await using azure = await openNamespace(entities)
  const { port } = azure.broker
  await azure.broker.stop()
  const socket = connect(port, '127.0.0.1')
  const [error] = await once(socket, 'error', { signal: within() }).catch((cause: unknown) => [cause])
  expect(error).toMatchObject({ code: 'ECONNREFUSED' })
  await azure.broker.start()
  await azure.serviceBus().createSender('q').sendMessages({ body: 1 })
})
