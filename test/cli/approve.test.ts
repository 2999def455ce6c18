import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { controlOf, eventId, openStage, type Stage, type StageOptions } from '../approvals/stage.ts'
import { run } from '../support/program.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'foreshock-approve-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A running forwarder, and a configuration file for commands beside it. */
async function openBeside(
  options: StageOptions = {},
  more: object = {},
): Promise<Stage & { readonly file: string; readonly path: string }> {
  const stage = await openStage(options)
  const path = folder()
  const file = join(path, 'config.json')
  const control = options.control === null ? {} : { control: controlOf(stage.namespace, { ...options.control, ...more }) }
  writeFileSync(
    file,
    JSON.stringify({
      imds: { endpoint: stage.imds.url },
      state: { path: stage.statePath },
      approvals: options.approvals ?? {},
      admin: { listen: false },
      ...control,
    }),
  )
  await stage.event(({ type }) => type.endsWith('.scheduled.v1'))
  return Object.assign(stage, { file, path })
}

const answerOf = (stdout: string): unknown => JSON.parse(stdout)

test('approve asks the running forwarder, which relays, and prints what came of it', async () => {
  const stage = await openBeside({ control: null, approvals: {} })
  const { status, stdout } = await run([
    'approve',
    eventId,
    '--config',
    stage.file,
    '--reason',
    'drained',
    '--requested-by',
    'anna',
    '--json',
  ])
  expect([status, answerOf(stdout)]).toMatchObject([0, { code: 'ok', event: { type: 'foreshock.approval.relayed.v1' } }])
  expect((await stage.told('ok')).data).toMatchObject({ via: 'command', requestedBy: 'anna', reason: 'drained', messageId: null })
  expect(stage.imds.posts.map(({ eventIds }) => eventIds)).toEqual([[eventId]])
  const shown = await run(['events', '--config', stage.file])
  expect(shown.stdout).toMatch(/approved +C7061BAC/)
})

test('approve with the id of a CloudEvent is bound to the state that it tells', async () => {
  const stage = await openBeside({ control: null, approvals: {} })
  const stale = `${eventId}:scheduled:0123456789abcdef`
  const { status, stdout } = await run(['approve', stale, '--config', stage.file])
  expect([status, stdout]).toEqual([1, expect.stringMatching(/^refused: state_changed: approved was 0123456789abcdef/)])
  const seen = stage.events.find(({ type }) => type.endsWith('.scheduled.v1'))
  expect(await run(['approve', seen?.id ?? '', '--config', stage.file])).toMatchObject({
    status: 0,
    stdout: 'approved: IMDS answered 200\n',
  })
})

test('hold keeps approve from it, also across a restart, until it is released', async () => {
  const stage = await openBeside({ control: null, approvals: {} })
  expect((await run(['hold', eventId, '--config', stage.file])).stdout).toMatch(/^held: /)
  await stage.forwarder.stop()
  await openStage({ imds: stage.imds, namespace: stage.namespace, statePath: stage.statePath, control: null, approvals: {} })
  expect((await run(['approve', eventId, '--config', stage.file])).stdout).toMatch(/^refused: held: /)
  expect((await run(['events', '--config', stage.file, '--json'])).stdout).toMatch(/"approval":"held by /)
  expect((await run(['hold', eventId, '--release', '--config', stage.file])).stdout).toBe('released: the hold is released\n')
  expect(await run(['approve', eventId, '--config', stage.file])).toMatchObject({ status: 0 })
  expect(stage.imds.posts).toHaveLength(1)
})

test('approve without a running forwarder says so, with status 69', async () => {
  const stage = await openBeside({ control: null, approvals: {} })
  await stage.forwarder.stop()
  expect(await run(['approve', eventId, '--config', stage.file])).toMatchObject({
    status: 69,
    stderr: expect.stringMatching(/no forwarder runs/),
  })
})

test('approve where nothing may be approved is a mistake of the configuration', async () => {
  const file = join(folder(), 'config.json')
  writeFileSync(file, '{}')
  expect(await run(['approve', eventId, '--config', file])).toMatchObject({ status: 2, stderr: expect.stringMatching(/section approvals/) })
})

test('approve --via queue sends the message and prints the reply', async () => {
  const stage = await openBeside({}, { replies: { queue: 'replies' } })
  const { status, stdout } = await run(['approve', eventId, '--via', 'queue', '--config', stage.file, '--json'])
  expect([status, answerOf(stdout)]).toMatchObject([0, { code: 'ok', event: { data: { via: 'queue', eventId } } }])
})

test('approve --via queue leaves the replies of others where they are', async () => {
  const stage = await openBeside({}, { replies: { queue: 'replies' } })
  const sender = stage.client.createSender('replies')
  for (const messageId of ['a', 'b', 'c'])
    await sender.sendMessages({ body: {}, messageId, correlationId: `of somebody else ${messageId}` })
  const unknown = ['approve', 'AAAAAAAA-0000-0000-0000-000000000000', '--via', 'queue', '--wait', '2', '--config', stage.file]
  expect((await run(unknown)).status).toBe(75)
  expect((await run(['approve', eventId, '--via', 'queue', '--config', stage.file])).status).toBe(0)
  const { broker } = stage.namespace
  expect([broker.count('replies'), broker.count('replies/$DeadLetterQueue')]).toEqual([3, 0])
  // Received once at most, and only while ours was there.
  for (let number = 0; number < 3; number += 1) expect((await stage.take('replies'))?.deliveryCount).toBeLessThanOrEqual(1)
})

test('keygen, approve --sign and a signed queue fit together', async () => {
  const path = folder()
  const [key, jwks] = [join(path, 'anna.jwk'), join(path, 'approvers.jwks')]
  const made = await run(['keygen', '--alg', 'EdDSA', '--kid', 'anna', '--out', key])
  writeFileSync(jwks, made.stdout)
  expect([made.status, statSync(key).mode & 0o777]).toEqual([0, 0o600])
  expect(made.stdout).not.toContain(JSON.parse(readFileSync(key, 'utf8')).d)
  expect(await run(['keygen', '--out', key])).toMatchObject({ status: 2, stderr: expect.stringMatching(/exists already/) })

  const stage = await openBeside({ control: { trust: { type: 'signed', jwks } } }, { replies: { queue: 'replies' } })
  const seen = stage.events.find(({ type }) => type.endsWith('.scheduled.v1'))
  const approve = (...more: string[]) => run(['approve', ...more, '--via', 'queue', '--config', stage.file])
  expect(await approve(eventId)).toMatchObject({ status: 2, stderr: expect.stringMatching(/--sign KEYFILE/) })
  expect(await approve(eventId, '--sign', key)).toMatchObject({ status: 2, stderr: expect.stringMatching(/bound to a state/) })
  const signed = await approve(seen?.id ?? '', '--sign', key, '--audience', seen?.source ?? '', '--subject', 'anna@contoso.example')
  expect(signed).toMatchObject({ status: 0, stdout: 'approved: IMDS answered 200\n' })
  expect((await stage.told('ok')).data).toMatchObject({ requestedBy: 'anna@contoso.example', keyIds: ['anna'] })
})

test('keygen without a file prints both parts', async () => {
  const { stdout } = await run(['keygen'])
  expect(JSON.parse(stdout)).toMatchObject({
    privateKey: { kty: 'EC', crv: 'P-256', alg: 'ES256', d: expect.any(String) },
    jwks: { keys: [expect.not.objectContaining({ d: expect.anything() })] },
  })
})
