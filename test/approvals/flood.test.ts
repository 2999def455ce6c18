import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { approval, openStage } from './stage.ts'

const flood = 10_000

/** Everything that is no approval: text, bytes, wrong shapes, deep JSON, odd encodings, cut and twisted approvals, up to the limit and beyond. */
function nonsense(index: number): Buffer {
  const good = JSON.stringify(approval())
  switch (index % 10) {
    case 0:
      return randomBytes(1 + (index % 2000))
    case 1:
      return Buffer.from('['.repeat(5_000))
    case 2:
      return Buffer.from(`${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`)
    case 3:
      return Buffer.from(good.slice(0, index % good.length))
    case 4:
      return Buffer.from(good, 'utf16le')
    case 5:
      return Buffer.from(`\u{FEFF}${good}`)
    case 6:
      return Buffer.from(JSON.stringify(approval({ eventId: { $ne: null }, command: ['approve'] })))
    case 7:
      return Buffer.from(JSON.stringify(approval({ __proto__: null, constructor: { prototype: {} }, digset: 'x' })))
    case 8:
      return Buffer.alloc(index % 100 === 8 ? 64 * 1024 + 1 : 512, 'x')
    default: {
      const bytes = Buffer.from(good)
      bytes[index % bytes.length] = 0xff
      return bytes
    }
  }
}

test(`a flood of ${flood} malformed messages, over links that break, ends in the dead-letter queue, with polls on time and memory bounded; a good one behind it is relayed`, async () => {
  const stage = await openStage({
    entities: { queues: [{ name: 'approvals', lockSeconds: 3, maxMegabytes: 512 }, { name: 'replies' }] },
    control: { concurrency: 16 },
    // Ten thousand events to a webhook are another test's affair.
    config: {
      sinks: [{ name: 'hook', type: 'webhook', url: 'http://127.0.0.1:9/', allowHttp: true, filter: { types: ['approval.relayed'] } }],
    },
  })
  const sender = stage.client.createSender('approvals')
  for (let sent = 0; sent < flood;) {
    const batch = await sender.createMessageBatch()
    while (sent < flood && batch.tryAddMessage({ body: nonsense(sent), messageId: `flood-${sent}` })) sent += 1
    await sender.sendMessages(batch)
  }
  await stage.send({ body: approval() })
  const before = process.memoryUsage().rss
  const polledBefore = stage.imds.requests.length
  const begun = Date.now()
  // A link does not live for ever either: it breaks every 1500 messages.
  const { broker } = stage.namespace
  for (let next = flood - 1500; broker.count('approvals') > 0; await sleep(50)) {
    if (broker.count('approvals') > next) continue
    broker.faults.detachLinks('approvals')
    next -= 1500
  }
  const seconds = (Date.now() - begun) / 1000
  expect(stage.namespace.broker.count('approvals/$DeadLetterQueue')).toBe(flood)
  expect(stage.imds.posts.map(({ status }) => status)).toEqual([200])
  // Five a second by its interval; two at least, on a machine that is busy with the broker in the same process.
  expect((stage.imds.requests.length - polledBefore) / seconds).toBeGreaterThan(2)
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024)
}, 60_000)
