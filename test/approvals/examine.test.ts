import { expect, it } from 'vitest'
import { examineControl } from '../../src/approvals/examine.ts'
import { controlSchema } from '../../src/config/approvals.ts'
import { openNamespace } from '../simulator/broker/namespace.ts'

const controlOf = (connectionString: string, queue: string) =>
  controlSchema.parse({ queue, auth: { type: 'connection-string', connectionString } })

it('the doctor looks into the control queue and takes nothing out of it', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'approvals' }, { name: 'by-session', requiresSession: true }] })
  const own = azure.broker.connectionString()
  expect(await examineControl(controlOf(own, 'approvals'), {})).toEqual({ ok: true, detail: 'approvals can be read; nothing waits' })
  await azure.serviceBus().createSender('approvals').sendMessages({ body: 'x', messageId: '1' })
  expect(await examineControl(controlOf(own, 'approvals'), {})).toEqual({ ok: true, detail: 'approvals can be read; messages wait' })
  expect(await examineControl(controlOf(own, 'by-session'), {})).toMatchObject({ ok: true })
  expect(azure.broker.count('approvals')).toBe(1)
})

it('the doctor says what keeps it from the control queue', async () => {
  await using azure = await openNamespace({ queues: [{ name: 'approvals' }] })
  const missing = await examineControl(controlOf(azure.broker.connectionString(), 'elsewhere'), {})
  expect(missing).toMatchObject({ ok: false, detail: expect.stringContaining('elsewhere') })
})
