import { expect, test } from 'vitest'
import { openNamespace } from './namespace.ts'

test('a link goes on beyond the 2048 deliveries that its buffer holds', { timeout: 60_000 }, async () => {
  await using azure = await openNamespace({ queues: [{ name: 'q' }] })
  const client = azure.serviceBus()
  const sender = client.createSender('q')
  const count = 2500
  for (let sent = 0; sent < count; sent += 500) {
    await sender.sendMessages(Array.from({ length: 500 }, (_, index) => ({ body: sent + index, messageId: `${sent + index}` })))
  }
  const receiver = client.createReceiver('q')
  let completed = 0
  while (completed < count) {
    const messages = await receiver.receiveMessages(250, { maxWaitTimeInMs: 5_000 })
    expect(messages.length).toBeGreaterThan(0)
    await Promise.all(messages.map((message) => receiver.completeMessage(message)))
    completed += messages.length
  }
  expect(azure.broker.count('q')).toBe(0)
})
