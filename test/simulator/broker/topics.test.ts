import { expect, test } from 'vitest'
import { openNamespace } from './namespace.ts'

const entities = {
  topics: [
    {
      name: 't',
      subscriptions: [
        { name: 'all' },
        { name: 'reboots', filter: { subject: 'reboot' } },
        { name: 'loud', filter: { applicationProperties: { level: 5, urgent: true } } },
      ],
    },
  ],
}
// Made anew each time: the SDK deletes `receiveMode` from the object that it is given.
const deleting = () => ({ receiveMode: 'receiveAndDelete' as const })
const counts = (broker: { count(path: string): number }) =>
  ['all', 'reboots', 'loud'].map((name) => broker.count(`t/Subscriptions/${name}`))

test('each subscription gets what passes its filter, and its own copy', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await client.createSender('t').sendMessages([
    { body: 1, subject: 'reboot' },
    { body: 2, subject: 'freeze', applicationProperties: { level: 5, urgent: true } },
    { body: 3, applicationProperties: { level: 5 } },
    { body: 4, applicationProperties: { level: '5', urgent: true } },
  ])
  expect(counts(azure.broker)).toEqual([4, 1, 1])
  const [reboot] = await client.createReceiver('t', 'reboots', deleting()).receiveMessages(1)
  const [loud] = await client.createReceiver('t', 'loud', deleting()).receiveMessages(1)
  expect([reboot?.body, loud?.body]).toEqual([1, 2])
  expect(counts(azure.broker)).toEqual([4, 0, 0])
})

test('a subscription has dead letters of its own', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await client.createSender('t').sendMessages({ body: 1 })
  const receiver = client.createReceiver('t', 'all', { maxAutoLockRenewalDurationInMs: 0 })
  const [message] = await receiver.receiveMessages(1)
  if (message === undefined) throw new Error('a message was expected')
  await receiver.deadLetterMessage(message, { deadLetterReason: 'r', deadLetterErrorDescription: 'd' })
  const [letter] = await client.createReceiver('t', 'all', { ...deleting(), subQueueType: 'deadLetter' }).receiveMessages(1)
  expect(letter).toMatchObject({ body: 1, deadLetterReason: 'r', deadLetterSource: 't/Subscriptions/all' })
})

test('a topic drops duplicates for all its subscriptions', async () => {
  await using azure = await openNamespace({ topics: [{ name: 't', duplicateDetectionSeconds: 60, subscriptions: [{ name: 'all' }] }] })
  const sender = azure.serviceBus().createSender('t')
  await sender.sendMessages({ body: 1, messageId: 'x' })
  await sender.sendMessages([
    { body: 2, messageId: 'x' },
    { body: 3, messageId: 'y' },
  ])
  expect(azure.broker.count('t/Subscriptions/all')).toBe(2)
})

test('a message that is scheduled on a topic can be called off in every subscription', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('t')
  const numbers = await sender.scheduleMessages({ body: 1, subject: 'reboot' }, new Date(Date.now() + 3_600_000))
  expect(counts(azure.broker)).toEqual([1, 1, 0])
  await sender.cancelScheduledMessages(numbers)
  expect(counts(azure.broker)).toEqual([0, 0, 0])
})

test('a subscription can require sessions', async () => {
  await using azure = await openNamespace({ topics: [{ name: 't', subscriptions: [{ name: 's', requiresSession: true }] }] })
  const client = azure.serviceBus()
  await client.createSender('t').sendMessages({ body: 1, sessionId: 'vm' })
  const receiver = await client.acceptSession('t', 's', 'vm', { maxAutoLockRenewalDurationInMs: 0 })
  expect(await receiver.receiveMessages(1)).toHaveLength(1)
})

test('nobody receives from a topic itself, and nobody sends to a subscription', async () => {
  await using azure = await openNamespace(entities)
  const client = azure.serviceBus()
  await expect(client.createReceiver('t').receiveMessages(1, { maxWaitTimeInMs: 500 })).rejects.toMatchObject({
    code: 'MessagingEntityNotFound',
  })
  await expect(client.createSender('t/Subscriptions/all').sendMessages({ body: 1 })).rejects.toMatchObject({
    code: 'MessagingEntityNotFound',
  })
})
