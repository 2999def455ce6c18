import { expect, test } from 'vitest'
import type { ScheduledEvent } from '../../src/lifecycle/model.ts'
import { approval, eventId, openStage, reboot, type Stage, type StageOptions } from './stage.ts'

/** What came of one message, everywhere that it shows. */
async function outcomeOf(stage: Stage, code: string, body: unknown): Promise<object> {
  const reply = stage.take('replies')
  await stage.send({ body, messageId: `m-${code}`, replyTo: 'replies' })
  const told = await stage.told(code)
  expect((await reply)?.body).toEqual(told)
  const letter = await stage.take('approvals', { dead: true })
  expect(stage.namespace.broker.count('approvals')).toBe(0)
  expect(told.data['messageId']).toBe(`m-${code}`)
  expect(letter?.deadLetterErrorDescription).toBe(told.data['detail'])
  return { type: told.type, reason: letter?.deadLetterReason, posts: stage.imds.posts.length, event: told.data['eventId'] }
}

const other = 'AAAAAAAA-0000-0000-0000-000000000000'
const two = { ...reboot, resources: ['web_0', 'web_1'] }

interface Row {
  readonly code: string
  readonly body?: unknown
  readonly options?: StageOptions
  /** null where the message could not be read. */
  readonly event?: string | null
}

const rows: readonly Row[] = [
  { code: 'too_large', body: Buffer.alloc(64 * 1024 + 1, 'x'), event: null },
  { code: 'malformed', body: Buffer.from('{"command":"approve"'), event: null },
  { code: 'wrong_audience', body: approval({ target: 'web_7' }) },
  { code: 'expired', body: approval({ expiresAt: '2020-01-01T00:00:00Z' }) },
  { code: 'unsupported_command', body: approval({ command: 'reject' }) },
  { code: 'event_not_visible', body: approval({ eventId: other }), options: { control: { maxDeliveryCount: 3 } }, event: other },
  { code: 'state_changed', body: approval({ digest: '0123456789abcdef' }) },
  { code: 'resources_mismatch', body: approval({ resources: ['web_0', 'web_1'] }) },
  { code: 'not_this_vm', options: { scenario: { events: [{ ...reboot, resources: ['web_1'] }] } } },
  {
    code: 'not_leader',
    options: { approvals: { leaderOnly: true }, scenario: { events: [{ ...reboot, resources: ['alpha_0', 'web_0'] }] } },
  },
  { code: 'too_many_resources', options: { scenario: { events: [two] } } },
  { code: 'event_type_not_permitted', options: { approvals: { eventTypes: ['Freeze'] } } },
]

test.each(rows)(
  '$code: nothing is posted, the message is a dead letter, and sinks and sender are told',
  async ({ code, body, options, event }) => {
    const stage = await openStage(options)
    expect(await outcomeOf(stage, code, body ?? approval())).toEqual({
      type: 'foreshock.approval.refused.v1',
      reason: code,
      posts: 0,
      event: event === undefined ? eventId : event,
    })
  },
)

test('event_already_started is what was asked for: completed, and told as such', async () => {
  const stage = await openStage({ scenario: { events: [{ ...reboot, status: 'Started', startedForSeconds: 600 }] } })
  await stage.send({ body: approval(), replyTo: 'replies' })
  const told = await stage.told('event_already_started')
  expect(told.type).toBe('foreshock.approval.refused.v1')
  expect((await stage.take('replies'))?.body).toEqual(told)
  await stage.forwarder.stop()
  expect([
    stage.imds.posts.length,
    stage.namespace.broker.count('approvals'),
    stage.namespace.broker.count('approvals/$DeadLetterQueue'),
  ]).toEqual([0, 0, 0])
})

test('replayed: the second message with the id of a relayed one is completed and told, and posts nothing', async () => {
  const stage = await openStage()
  await stage.send({ body: approval(), messageId: 'same' })
  await stage.told('ok')
  await stage.send({ body: approval({ reason: 'again' }), messageId: 'same', replyTo: 'replies' })
  const told = await stage.told('replayed')
  expect((await stage.take('replies'))?.body).toEqual(told)
  await stage.forwarder.stop()
  expect([
    stage.imds.posts.length,
    stage.namespace.broker.count('approvals'),
    stage.namespace.broker.count('approvals/$DeadLetterQueue'),
  ]).toEqual([1, 0, 0])
})

test('held: after a hold an approval is a dead letter, and the hold itself is completed', async () => {
  const stage = await openStage()
  await stage.send({ body: approval({ command: 'hold', requestedBy: 'bob' }), messageId: 'the-hold', replyTo: 'replies' })
  const hold = await stage.told('held')
  expect([hold.type, hold.data['requestedBy']]).toEqual(['foreshock.approval.refused.v1', 'bob'])
  expect((await stage.take('replies'))?.body).toEqual(hold)
  await stage.send({ body: approval(), messageId: 'the-approval', replyTo: 'replies' })
  expect((await stage.take('approvals', { dead: true }))?.deadLetterReason).toBe('held')
  const told = await stage.event(({ data }) => data['messageId'] === 'the-approval')
  expect(told.data['code']).toBe('held')
  expect((await stage.take('replies'))?.body).toEqual(told)
  expect([stage.imds.posts.length, stage.namespace.broker.count('approvals')]).toEqual([0, 0])
})

test('rate_limited: what is too much is given back, and a dead letter in the end', async () => {
  const stage = await openStage({
    control: { maxDeliveryCount: 2 },
    approvals: { rateLimit: { approvals: 1, perSeconds: 3600 } },
    scenario: { events: [reboot, { ...reboot, id: other }] },
  })
  await stage.send({ body: approval() })
  await stage.told('ok')
  expect(await outcomeOf(stage, 'rate_limited', approval({ eventId: other }))).toEqual({
    type: 'foreshock.approval.refused.v1',
    reason: 'rate_limited',
    posts: 1,
    event: other,
  })
})

test('relay_failed: IMDS refuses for good; the message is tried again until its deliveries run out', async () => {
  const stage = await openStage({ control: { maxDeliveryCount: 2 } })
  stage.imds.setFault({ kind: 'status', status: 400, on: ['approvals'] })
  const outcome = await outcomeOf(stage, 'relay_failed', approval())
  expect(outcome).toEqual({ type: 'foreshock.approval.failed.v1', reason: 'relay_failed', posts: 2, event: eventId })
  expect((await stage.told('relay_failed')).data['attempts']).toBe(2)
})

test('an approval that is bound to the state that it saw is relayed while that state stands', async () => {
  const stage = await openStage()
  const scheduled = await stage.event(({ type }) => type.endsWith('.scheduled.v1'))
  const digest = scheduled.id.split(':')[2]
  await stage.send({ body: approval({ digest, resources: ['WEB_0'], target: 'web_0' }) })
  expect((await stage.told('ok')).data).toMatchObject({ digest, attempts: 1 })
})

const document = (more: { notBefore?: string | null; resources?: readonly string[] }): object => ({
  DocumentIncarnation: 7,
  Events: [
    {
      EventId: eventId,
      EventType: 'Reboot',
      EventStatus: 'Scheduled',
      ResourceType: 'VirtualMachine',
      Resources: more.resources ?? ['web_0'],
      NotBefore: more.notBefore ?? 'Mon, 21 Dec 2026 10:00:00 GMT',
    },
  ],
})

test.each([
  ['moved NotBefore', { notBefore: 'Mon, 21 Dec 2026 11:00:00 GMT' }],
  ['more machines', { resources: ['web_0', 'web_1'] }],
])('state_changed: the event has %s since it was approved', async (_, change: Partial<ScheduledEvent>) => {
  const stage = await openStage({ approvals: { maxResources: 5 } })
  stage.imds.setDocument(document({}))
  const seen = await stage.event(({ data }) => data['notBefore'] === '2026-12-21T10:00:00Z')
  stage.imds.setDocument(document(change))
  const digest = seen.id.split(':')[2]
  await stage.send({ body: approval({ digest }) })
  await stage.told('state_changed')
  expect((await stage.take('approvals', { dead: true }))?.deadLetterReason).toBe('state_changed')
  expect(stage.imds.posts).toEqual([])
})
