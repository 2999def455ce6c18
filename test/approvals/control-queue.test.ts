import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { approval, eventId, openStage, reboot, type Stage } from './stage.ts'

const second = 'AAAAAAAA-0000-0000-0000-000000000000'
const sessions = { queues: [{ name: 'approvals', requiresSession: true, lockSeconds: 1 }, { name: 'replies' }] }

const empty = (stage: Stage): boolean => stage.namespace.broker.count('approvals') === 0
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20)
}

const receiving = (stage: Stage): Promise<void> => until(() => stage.forwarder.status().approvals?.control?.state === 'receiving')

test.each([
  ['vm', 'web_0'],
  ['group', 'web'],
  ['fleet-7', 'fleet-7'],
])('a session queue: session %s takes the messages of %s and nobody else’s', async (session, sessionId) => {
  const stage = await openStage({
    entities: sessions,
    control: { session },
    scenario: { vms: [{ name: 'web_0', compute: { vmScaleSetName: 'web' } }], events: [reboot] },
  })
  await stage.send({ body: approval(), sessionId: 'another' })
  await stage.send({ body: approval(), sessionId, messageId: 'mine' })
  expect((await stage.told('ok')).data['messageId']).toBe('mine')
  await stage.forwarder.stop()
  expect(stage.namespace.broker.count('approvals')).toBe(1)
})

test('a session is held over many lock times, and taken again when its lock or its connection is lost', async () => {
  const stage = await openStage({
    entities: sessions,
    control: { session: 'vm' },
    scenario: { events: [reboot, { ...reboot, id: second }] },
  })
  await stage.send({ body: approval(), sessionId: 'web_0' })
  await stage.told('ok')
  await sleep(2500)
  await stage.send({ body: approval({ eventId: second }), sessionId: 'web_0', messageId: 'after locks' })
  await stage.event(({ data }) => data['messageId'] === 'after locks')
  stage.namespace.broker.faults.dropConnections()
  const again = stage.namespace.serviceBus().createSender('approvals')
  await again.sendMessages({ body: approval({ digest: '0'.repeat(16) }), sessionId: 'web_0' })
  expect((await stage.told('state_changed')).data['eventId']).toBe(eventId)
})

test('another forwarder takes over the session of a group when the first one ends', async () => {
  const first = await openStage({ entities: sessions, control: { session: 'shared' } })
  await until(() => first.namespace.broker.links > 3)
  const next = await openStage({ namespace: first.namespace, imds: first.imds, control: { session: 'shared' } })
  await first.send({ body: approval(), sessionId: 'shared', messageId: 'one' })
  await first.told('ok')
  await first.forwarder.stop()
  await first.send({ body: approval(), sessionId: 'shared', messageId: 'two' })
  expect((await next.told('ok')).data['messageId']).toBe('two')
})

test('a topic subscription works like a queue', async () => {
  const stage = await openStage({
    entities: { topics: [{ name: 'approvals', subscriptions: [{ name: 'web_0', lockSeconds: 5 }, { name: 'web_1' }] }] },
    control: { queue: undefined, topic: 'approvals', subscription: 'web_0' },
  })
  await stage.send({ body: approval() })
  await stage.told('ok')
  await stage.forwarder.stop()
  expect(['web_0', 'web_1'].map((name) => stage.namespace.broker.count(`approvals/Subscriptions/${name}`))).toEqual([0, 1])
})

test('a message without a messageId is relayed and settled like any other', async () => {
  const stage = await openStage()
  await stage.send({ body: approval(), messageId: '' })
  const told = await stage.told('ok')
  expect([told.data['messageId'], told['causationid']]).toEqual([null, undefined])
  await until(() => empty(stage))
})

test('the lock of a message is renewed for as long as its approval takes', async () => {
  const stage = await openStage({ entities: { queues: [{ name: 'approvals', lockSeconds: 1 }] } })
  stage.imds.setFault({ kind: 'delay', delayMs: 2500, on: ['approvals'] })
  await stage.send({ body: approval() })
  await stage.told('ok')
  await until(() => empty(stage))
  expect(stage.imds.posts).toHaveLength(1)
})

test('nothing is received while IMDS cannot be read, and everything once it can', async () => {
  const stage = await openStage()
  await stage.event(({ type }) => type.endsWith('.scheduled.v1'))
  await receiving(stage)
  stage.imds.setFault({ kind: 'status', status: 503, on: ['events'] })
  await until(() => stage.forwarder.status().approvals?.control?.state === 'paused')
  await stage.send({ body: approval() })
  await sleep(500)
  const [waiting] = await stage.client.createReceiver('approvals').peekMessages(1)
  expect([waiting?.deliveryCount, waiting?.state, stage.imds.posts]).toEqual([0, 'active', []])
  stage.imds.clearFaults()
  await stage.told('ok')
  expect((await stage.told('ok')).data['attempts']).toBe(1)
})

test.each([
  ['its connection breaks', (stage: Stage) => void stage.namespace.broker.faults.dropConnections()],
  ['its link is detached', (stage: Stage) => void stage.namespace.broker.faults.detachLinks('approvals')],
  ['the broker restarts', (stage: Stage) => stage.namespace.broker.restart()],
])('it goes on receiving after %s', async (_, cause) => {
  const stage = await openStage()
  await receiving(stage)
  await cause(stage)
  await stage.namespace.serviceBus().createSender('approvals').sendMessages({ body: approval() })
  expect((await stage.told('ok')).data['attempts']).toBe(1)
})

test('a queue that is not there is told with its reason, and taken once it is', async () => {
  const stage = await openStage()
  const fault = stage.namespace.broker.faults.disableEntity('approvals')
  await until(() => stage.forwarder.status().approvals?.control?.state === 'failing')
  expect(stage.forwarder.status().approvals?.control).toMatchObject({ detail: expect.stringMatching(/disabled/i) })
  fault.clear()
  await stage.send({ body: approval() })
  await stage.told('ok')
})

test('a graceful stop brings what is being relayed to its end, and leaves the rest in the queue', async () => {
  const stage = await openStage({ control: { concurrency: 1 }, scenario: { events: [reboot, { ...reboot, id: second }] } })
  stage.imds.setFault({ kind: 'delay', delayMs: 700, on: ['approvals'] })
  await stage.send({ body: approval() })
  await stage.send({ body: approval({ eventId: second }) })
  await until(() => stage.imds.posts.length > 0)
  await stage.forwarder.stop()
  expect((await stage.told('ok')).data['eventId']).toBe(eventId)
  expect([stage.imds.posts.length, stage.namespace.broker.count('approvals')]).toEqual([1, 1])
  const [left] = await stage.client.createReceiver('approvals').receiveMessages(1)
  expect(left?.body).toMatchObject({ eventId: second })
})

test('replies go only to other entities of the namespace, with the session that was asked for', async () => {
  const stage = await openStage({
    entities: { queues: [{ name: 'approvals' }, { name: 'replies', requiresSession: true }] },
    scenario: { events: [reboot, { ...reboot, id: second }] },
  })
  await stage.send({ body: approval(), replyTo: 'replies', replyToSessionId: 'anna', messageId: 'm' })
  const receiver = await stage.client.acceptSession('replies', 'anna', { maxAutoLockRenewalDurationInMs: 0 })
  const [reply] = await receiver.receiveMessages(1)
  expect([reply?.correlationId, reply?.sessionId, reply?.contentType]).toEqual(['m', 'anna', 'application/cloudevents+json; charset=utf-8'])
  for (const replyTo of ['http://127.0.0.1/trap', 'approvals', 'missing'])
    await stage.send({ body: approval({ eventId: second }), replyTo })
  await until(() => empty(stage))
  expect(stage.namespace.broker.received('approvals')).toHaveLength(4)
})

test('events that ask for an approval are taken as CloudEvents, structured and binary', async () => {
  const stage = await openStage({ scenario: { events: [reboot, { ...reboot, id: second }] } })
  const attributes = { specversion: '1.0', id: '1', source: '/ops', type: 'foreshock.approval.requested.v1' }
  await stage.send({
    body: Buffer.from(JSON.stringify({ ...attributes, data: approval() })),
    contentType: 'application/cloudevents+json; charset=utf-8',
  })
  expect((await stage.told('ok')).data['eventId']).toBe(eventId)
  const properties = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`cloudEvents:${name}`, value]))
  await stage.send({ body: approval({ eventId: second }), contentType: 'application/json', applicationProperties: properties })
  await stage.event(({ type, data }) => type.endsWith('.relayed.v1') && data['eventId'] === second)
  await stage.send({ body: approval(), applicationProperties: { ...properties, 'cloudEvents:type': 'com.example.other' } })
  expect((await stage.told('malformed')).data['detail']).toMatch(/foreshock\.approval\.requested\.v1/)
})
