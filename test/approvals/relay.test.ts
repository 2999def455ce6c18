import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { askForwarder } from '../../src/approvals/ask-forwarder.ts'
import { createLog } from '../../src/log.ts'
import { openDatabase } from '../../src/outbox/database.ts'
import { createStore } from '../../src/outbox/store.ts'
import type { HandFault } from '../../src/simulator/imds/scenario-fault.ts'
import { temporaryFolder } from '../outbox/outbox-fixture.ts'
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
    // A lock that is lost once makes the message a dead letter.
    const entities = { queues: [{ name: 'approvals', lockSeconds: 5, maxDeliveryCount: 1 }, { name: 'replies' }] }
    const stage = await openStage({ entities, scenario: { events: [{ ...reboot, approvalDelaySeconds: 60 }] } })
    stage.imds.setFault({ kind: 'hang', on, times: 1 })
    const begun = performance.now()
    await stage.send({ body: approval(), replyTo: 'replies' })
    const told = await stage.told('ok')
    expect(told.data['attempts']).toBe(2)
    expect(performance.now() - begun).toBeGreaterThan(10_000)
    expect((await stage.take('replies'))?.body).toEqual(told)
    expect(stage.imds.posts).toHaveLength(2)
    await stage.forwarder.stop()
    expect([stage.namespace.broker.count('approvals'), stage.namespace.broker.count('approvals/$DeadLetterQueue')]).toEqual([0, 0])
  },
)

test('an approval that runs out while its POST is repeated is not posted again, and says that one had gone out', async () => {
  const stage = await openStage()
  stage.imds.setFault({ kind: 'status', status: 429, on })
  const expiresAt = Date.now() + 1500
  await stage.send({ body: approval({ expiresAt: new Date(expiresAt).toISOString() }), replyTo: 'replies' })
  const told = await stage.told('expired')
  expect(told.data['detail']).toMatch(/POSTs? of ours had gone out before, without an answer/)
  expect(told.data['attempts']).toBe(stage.imds.posts.length)
  expect((await stage.take('replies'))?.body).toEqual(told)
  expect((await stage.take('approvals', { dead: true }))?.deadLetterReason).toBe('expired')
  const posts = stage.imds.posts.length
  await sleep(2500)
  expect(stage.imds.posts).toHaveLength(posts)
})

test('a hold stops the repeating of a POST: it does not wait behind the approval', async () => {
  const stage = await openStage({ approvals: {} })
  stage.imds.setFault({ kind: 'status', status: 429, on })
  await stage.send({ body: approval() })
  await vi.waitFor(() => expect(stage.imds.posts.length).toBeGreaterThan(0))
  const hold = { command: 'hold', eventId, digest: null, requestedBy: 'bob', reason: null, expiresAt: Date.now() + 5000 } as const
  expect(await askForwarder(stage.statePath, hold, Date.now)).toMatchObject({ code: 'ok' })
  const told = await stage.event(({ data }) => data['code'] === 'held' && data['via'] === 'queue')
  expect(told.data['attempts']).toBe(stage.imds.posts.length)
  expect(stage.events.filter(({ data }) => data['code'] === 'ok')).toEqual([])
})

test.each(['policy', 'command'] as const)(
  'an approval by %s whose POST was on its way when the forwarder was killed is told after the start, and not posted again',
  async (via) => {
    const killed = join(temporaryFolder(), 'state.db')
    const database = openDatabase(killed, { now: Date.now, log: await createLog('silent') })
    const request = `${via}:${via === 'policy' ? `${eventId.toLowerCase()}:g1:0123456789abcdef` : '7'}`
    createStore(database, { now: () => Date.now() - 60_000 }).recordApproval(request, [eventId.toLowerCase()], request)
    database.close()
    const stage = await openStage({
      statePath: killed,
      control: null,
      approvals: {},
      scenario: { events: [{ ...reboot, status: 'Started', startedForSeconds: 600 }] },
    })
    const told = await stage.told('event_already_started')
    expect(told.data).toMatchObject({ via, requestedBy: via, attempts: 1, resources: ['web_0'] })
    expect(told.data['detail']).toMatch(/a POST of ours had gone out before/)
    expect(stage.imds.posts).toEqual([])
  },
)

test('an approval that ran out after a POST that did start the event is not told as expired', async () => {
  const stage = await openStage({ scenario: { events: [{ ...reboot, approvalDelaySeconds: 0 }] } })
  stage.imds.setFault({ kind: 'reset', on, times: 1 })
  await stage.send({ body: approval({ expiresAt: new Date(Date.now() + 400).toISOString() }) })
  await stage.event(({ type }) => type.includes('.approval.'))
  await stage.forwarder.stop()
  const told = stage.events.filter(({ type }) => type.includes('.approval.')).map(({ data }) => [data['code'], data['attempts']])
  expect(told).toEqual([['event_already_started', 1]])
  expect(stage.namespace.broker.count('approvals/$DeadLetterQueue')).toBe(0)
})

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
