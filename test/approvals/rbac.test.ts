import { expect, test } from 'vitest'
import { approval, eventId, openStage } from './stage.ts'

test('a valid approval is relayed, told, replied to and completed', async () => {
  const stage = await openStage()
  await stage.send({ body: approval({ reason: 'tested' }), messageId: 'm-1', replyTo: 'replies' })
  const told = await stage.told('ok')
  expect(told.type).toBe('foreshock.approval.relayed.v1')
  expect(told.data).toMatchObject({
    eventId,
    code: 'ok',
    via: 'queue',
    requestedBy: 'anna@contoso.example',
    reason: 'tested',
    messageId: 'm-1',
    resources: ['web_0'],
    eventType: 'Reboot',
    attempts: 1,
  })
  expect(stage.imds.posts.map((post) => [post.eventIds, post.status])).toEqual([[[eventId], 200]])
  const reply = await stage.take('replies')
  expect(reply?.correlationId).toBe('m-1')
  expect(reply?.body).toEqual(told)
  await stage.forwarder.stop()
  expect(stage.namespace.broker.count('approvals')).toBe(0)
  expect(stage.namespace.broker.count('approvals/$DeadLetterQueue')).toBe(0)
})
