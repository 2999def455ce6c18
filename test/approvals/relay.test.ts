import { expect, test } from 'vitest'
import type { HandFault } from '../../src/simulator/imds/scenario-fault.ts'
import { approval, eventId, openStage, reboot } from './stage.ts'

const on = ['approvals'] as const
const second = 'AAAAAAAA-0000-0000-0000-000000000000'

test.each<[string, HandFault]>([
  ['429', { kind: 'status', status: 429, on, times: 2 }],
  ['410', { kind: 'status', status: 410, on, times: 1 }],
  ['500', { kind: 'status', status: 500, on, times: 2 }],
  ['a connection that is cut after it was carried out', { kind: 'reset', on, times: 1 }],
  ['half an answer', { kind: 'truncate', on, times: 1 }],
])('IMDS answers the POST with %s: it is repeated while the event is still Scheduled, and succeeds once', async (_, fault) => {
  const stage = await openStage()
  stage.imds.setFault(fault)
  await stage.send({ body: approval() })
  const told = await stage.told('ok')
  expect(told.data['attempts']).toBe(stage.imds.posts.length)
  expect(stage.events.filter(({ type }) => type.includes('.approval.'))).toHaveLength(1)
})

test(
  'IMDS answers the POST not at all: that is waited out, with the lock of the message renewed, and it is repeated',
  { timeout: 40_000 },
  async () => {
    const stage = await openStage({ scenario: { events: [{ ...reboot, approvalDelaySeconds: 60 }] } })
    stage.imds.setFault({ kind: 'hang', on, times: 1 })
    const begun = performance.now()
    await stage.send({ body: approval(), replyTo: 'replies' })
    const told = await stage.told('ok')
    expect(told.data['attempts']).toBe(2)
    expect(performance.now() - begun).toBeGreaterThan(10_000)
    expect((await stage.take('replies'))?.body).toEqual(told)
    expect(stage.imds.posts).toHaveLength(2)
  },
)

test('a POST that was cut is not repeated once the event has started', async () => {
  const stage = await openStage({ scenario: { events: [{ ...reboot, approvalDelaySeconds: 0 }] } })
  stage.imds.setFault({ kind: 'reset', on, times: 1 })
  await stage.send({ body: approval() })
  expect((await stage.told('event_already_started')).data['attempts']).toBe(1)
  expect(stage.imds.posts).toHaveLength(1)
})

test('an IMDS that fails again and again ends as relay_failed, once the message has had its deliveries', async () => {
  const stage = await openStage({ control: { maxDeliveryCount: 1 } })
  stage.imds.setFault({ kind: 'status', status: 400, on })
  await stage.send({ body: approval() })
  expect((await stage.told('relay_failed')).type).toBe('foreshock.approval.failed.v1')
  expect((await stage.take('approvals', { dead: true }))?.deadLetterReason).toBe('relay_failed')
})

test('several events that were asked for together go in one POST, each with an outcome of its own', async () => {
  const stage = await openStage({ scenario: { events: [reboot, { ...reboot, id: second }] } })
  await stage.send({ body: { StartRequests: [{ EventId: eventId }, { EventId: second }] }, messageId: 'both', replyTo: 'replies' })
  const outcomes = [await stage.event(of(eventId)), await stage.event(of(second))]
  expect(outcomes.map(({ data }) => [data['code'], data['requestedBy']])).toEqual([
    ['ok', null],
    ['ok', null],
  ])
  expect(stage.imds.posts.map(({ eventIds }) => eventIds)).toEqual([[eventId, second]])
  expect([(await stage.take('replies'))?.correlationId, (await stage.take('replies'))?.correlationId]).toEqual(['both', 'both'])
})

test('what is refused of several does not keep the others from being approved, and the message is a dead letter', async () => {
  const stage = await openStage({ scenario: { events: [reboot, { ...reboot, id: second, resources: ['web_1'] }] } })
  await stage.send({ body: { StartRequests: [{ EventId: eventId }, { EventId: second }] } })
  expect((await stage.event(of(second))).data['code']).toBe('not_this_vm')
  expect((await stage.event(of(eventId))).data['code']).toBe('ok')
  expect((await stage.take('approvals', { dead: true }))?.deadLetterReason).toBe('not_this_vm')
  expect(stage.imds.posts.map(({ eventIds }) => eventIds)).toEqual([[eventId]])
})

test('the first API version gets the incarnation beside the requests, as a string', async () => {
  const played = await openStage({ scenario: { incarnation: 5 }, start: false })
  const stage = await openStage({
    imds: played.imds,
    config: { imds: { endpoint: played.imds.url, apiVersion: '2017-03-01', pollIntervalMs: 200 } },
  })
  await stage.send({ body: approval() })
  await stage.told('ok')
  expect(JSON.parse(stage.imds.posts[0]?.body ?? '')).toEqual({
    DocumentIncarnation: expect.stringMatching(/^\d+$/),
    StartRequests: [{ EventId: eventId }],
  })
})

const terminate = (id: string, vm: string): object => ({ id, type: 'Terminate', resources: [vm], noticeSeconds: 300 })

test('a Terminate is approved only by its own machine, and its event tells of those that have the same NotBefore', async () => {
  const stage = await openStage({
    scenario: { events: [terminate(eventId, 'web_0'), terminate(second, 'web_1')] },
    approvals: { events: 'any', eventTypes: ['Terminate'] },
  })
  await stage.send({ body: approval({ eventId: second }) })
  await stage.told('not_this_vm')
  await stage.send({ body: approval() })
  expect((await stage.told('ok')).data['detail']).toMatch(/1 more Terminate with the same NotBefore/)
  expect(stage.imds.posts.map(({ eventIds }) => eventIds)).toEqual([[eventId]])
})

test('an event that IMDS has only just shown is told before its approval is', async () => {
  const stage = await openStage({ scenario: { events: [{ ...reboot, appearsAtSeconds: 1 }] } })
  await stage.event(({ type }) => type.endsWith('.scheduled.v1'))
  await stage.send({ body: approval() })
  await stage.told('ok')
  const types = stage.events.filter(({ partitionkey }) => partitionkey === eventId.toLowerCase()).map(({ type }) => type)
  expect(types).toEqual(['foreshock.scheduledevent.scheduled.v1', 'foreshock.approval.relayed.v1'])
})

function of(id: string): (event: { readonly type: string; readonly data: object }) => boolean {
  return ({ type, data }) => type.includes('.approval.') && Reflect.get(data, 'eventId') === id
}
