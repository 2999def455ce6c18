import { createHmac, createPublicKey } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { forge, newSigner, rewriteJwks, signCompact, signGeneral, typ, writeJwks, type Signer } from './signing.ts'
import { approval, eventId, openStage, reboot, type Stage, type StageOptions } from './stage.ts'

let anna: Signer
let bob: Signer
let mallory: Signer
beforeAll(async () => {
  anna = await newSigner('anna')
  bob = await newSigner('bob', 'EdDSA')
  mallory = await newSigner('mallory')
})

/** The source of the simulated machine, as its events say. */
const sourceOf = async (stage: Stage): Promise<string> => (await stage.event(({ type }) => type.endsWith('.scheduled.v1'))).source
const digestOf = async (stage: Stage): Promise<string> =>
  (await stage.event(({ type }) => type.endsWith('.scheduled.v1'))).id.split(':')[2] ?? ''

async function claimsFor(stage: Stage, more: object = {}, evt: object = {}): Promise<object> {
  const iat = Math.floor(Date.now() / 1000)
  return {
    iss: 'ops.contoso.example',
    sub: 'anna',
    aud: await sourceOf(stage),
    jti: crypto.randomUUID(),
    iat,
    exp: iat + 300,
    evt: { command: 'approve', eventId, digest: await digestOf(stage), ...evt },
    ...more,
  }
}

async function openSigned(jwks: string, trust: object = {}, options: StageOptions = {}): Promise<Stage> {
  return await openStage({ ...options, control: { trust: { type: 'signed', jwks, ...trust }, ...options.control } })
}

/** What came of one message that is to be refused with this code. */
async function refusal(stage: Stage, code: string, body: Buffer | object): Promise<object> {
  await stage.send({ body, contentType: 'application/jose', replyTo: 'replies' })
  const letter = await stage.take('approvals', { dead: true })
  const told = await stage.told(code)
  expect((await stage.take('replies'))?.body).toEqual(told)
  const { type, data } = told
  return { type, sameReason: letter?.deadLetterReason === code && data['code'] === code, posts: stage.imds.posts.length }
}

const refused = { type: 'foreshock.approval.refused.v1', sameReason: true, posts: 0 }

test.each(['compact', 'general'])('a signed approval in %s serialization is relayed, with who signed it', async (serialization) => {
  const stage = await openSigned(writeJwks(anna, bob))
  const claims = await claimsFor(stage, {}, { reason: 'drained' })
  const body = serialization === 'compact' ? await signCompact(bob, claims) : await signGeneral(claims, [bob, 'bob@contoso.example'])
  await stage.send({ body, contentType: 'application/jose', messageId: 'm' })
  expect((await stage.told('ok')).data).toMatchObject({
    via: 'queue',
    requestedBy: serialization === 'compact' ? 'anna' : 'bob@contoso.example',
    issuer: 'ops.contoso.example',
    keyIds: ['bob'],
    reason: 'drained',
    messageId: 'm',
  })
  expect(stage.imds.posts.map(({ status }) => status)).toEqual([200])
})

test('an unsigned approval is malformed where trust is signed', async () => {
  expect(await refusal(await openSigned(writeJwks(anna)), 'malformed', approval())).toEqual(refused)
})

type Attack = readonly [what: string, code: string, body: (stage: Stage, trap: string) => Promise<Buffer>]
const attacks: readonly Attack[] = [
  ['alg none', 'bad_alg', async (stage) => forge({ alg: 'none', kid: 'anna', typ }, await claimsFor(stage))],
  [
    'HS256 keyed with the public key',
    'bad_alg',
    async (stage) => {
      const pem = createPublicKey({ key: { ...anna.publicJwk }, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
      const unsigned = forge({ alg: 'HS256', kid: 'anna', typ }, await claimsFor(stage))
        .toString()
        .replace(/\.$/, '')
      return Buffer.from(`${unsigned}.${createHmac('sha256', pem).update(unsigned).digest('base64url')}`)
    },
  ],
  [
    'an embedded jwk',
    'malformed',
    async (stage) => signCompact({ ...mallory, kid: 'anna' }, await claimsFor(stage), { jwk: mallory.publicJwk }),
  ],
  ['a jku to a trap', 'malformed', async (stage, trap) => signCompact({ ...mallory, kid: 'anna' }, await claimsFor(stage), { jku: trap })],
  ['an x5u to a trap', 'malformed', async (stage, trap) => signCompact(anna, await claimsFor(stage), { x5u: trap })],
  ['another typ', 'bad_typ', async (stage) => signCompact(anna, await claimsFor(stage), { typ: 'JWT' })],
  ['a key that is not in the file', 'unknown_key', async (stage) => signCompact(mallory, await claimsFor(stage))],
  ['another key under a known kid', 'bad_signature', async (stage) => signCompact({ ...mallory, kid: 'anna' }, await claimsFor(stage))],
  [
    'a swapped payload',
    'bad_signature',
    async (stage) => {
      const [header, , signature] = (await signCompact(anna, await claimsFor(stage))).toString().split('.')
      const [, payload] = (await signCompact(anna, await claimsFor(stage, { sub: 'the boss' }))).toString().split('.')
      return Buffer.from([header, payload, signature].join('.'))
    },
  ],
  ['another audience', 'wrong_audience', async (stage) => signCompact(anna, await claimsFor(stage, { aud: '/subscriptions/other' }))],
  [
    'a lifetime of an hour',
    'lifetime_too_long',
    async (stage) => signCompact(anna, await claimsFor(stage, { exp: Math.floor(Date.now() / 1000) + 3600 })),
  ],
  [
    'a time that is over',
    'expired',
    async (stage) =>
      signCompact(anna, await claimsFor(stage, { iat: Math.floor(Date.now() / 1000) - 400, exp: Math.floor(Date.now() / 1000) - 61 })),
  ],
  [
    'a time that has not come',
    'not_yet_valid',
    async (stage) =>
      signCompact(anna, await claimsFor(stage, { iat: Math.floor(Date.now() / 1000) + 90, exp: Math.floor(Date.now() / 1000) + 200 })),
  ],
  ['no digest', 'malformed', async (stage) => signCompact(anna, await claimsFor(stage, {}, { digest: undefined }))],
]

test.each(attacks)('%s is refused as %s, and nobody is asked for a key', async (_, code, body) => {
  const trap = await startHttpReceiver()
  try {
    const stage = await openSigned(writeJwks(anna))
    expect(await refusal(stage, code, await body(stage, `${trap.origin}/jwks`))).toEqual(refused)
    expect([trap.requests, trap.connections()]).toEqual([[], 0])
  } finally {
    await trap.stop()
  }
})

test('a quorum of two wants two people with two keys, all in one message', async () => {
  const stage = await openSigned(writeJwks(anna, bob), { quorum: 2 })
  const claims = await claimsFor(stage)
  expect(await refusal(stage, 'quorum_not_met', await signCompact(anna, claims))).toEqual(refused)
  // One of the two was not enough: the same approval, signed by both now, is no replay.
  await stage.send({ body: await signGeneral(claims, [anna, 'anna'], [bob, 'bob']), contentType: 'application/jose' })
  expect((await stage.told('ok')).data).toMatchObject({ keyIds: ['anna', 'bob'], requestedBy: 'anna, bob' })
})

test.each([
  ['the same person with two keys', async (claims: object) => signGeneral(claims, [anna, 'anna'], [bob, 'anna'])],
  ['the same key twice', async (claims: object) => signGeneral(claims, [anna, 'anna'], [anna, 'bob'])],
])('a quorum of two is not met by %s', async (_, sign) => {
  const stage = await openSigned(writeJwks(anna, bob), { quorum: 2 })
  expect(await refusal(stage, 'quorum_not_met', await sign(await claimsFor(stage)))).toEqual(refused)
})

test('a good signature beside a bad one counts for nothing', async () => {
  const stage = await openSigned(writeJwks(anna, bob), { quorum: 1 })
  expect(
    await refusal(stage, 'bad_signature', await signGeneral(await claimsFor(stage), [anna, 'anna'], [{ ...mallory, kid: 'anna' }, 'bob'])),
  ).toEqual(refused)
})

test('a signed approval that was relayed once is a replay under whatever message id', async () => {
  const stage = await openSigned(writeJwks(anna))
  const body = await signCompact(anna, await claimsFor(stage))
  await stage.send({ body, messageId: 'one' })
  await stage.told('ok')
  await stage.send({ body, messageId: 'two', replyTo: 'replies' })
  const told = await stage.told('replayed')
  expect(told.data['messageId']).toBe('two')
  expect((await stage.take('replies'))?.body).toEqual(told)
  expect(stage.imds.posts).toHaveLength(1)
})

test('a key is limited to its issuers, event types and audiences', async () => {
  const limits = { anna: { issuers: ['ops.contoso.example'], eventTypes: ['Freeze'], audiences: ['/subscriptions/other'] } }
  const stage = await openSigned(writeJwks(anna), { keys: limits })
  expect(await refusal(stage, 'issuer_not_allowed', await signCompact(anna, await claimsFor(stage, { iss: 'elsewhere' })))).toEqual(refused)
  expect(await refusal(stage, 'wrong_audience', await signCompact(anna, await claimsFor(stage)))).toEqual(refused)
  const typed = await openSigned(writeJwks(anna), { keys: { anna: { eventTypes: ['Freeze'] } } })
  expect(await refusal(typed, 'event_type_not_permitted', await signCompact(anna, await claimsFor(typed)))).toEqual(refused)
})

test('the file with the keys is read again when it changes: a removed key is refused, a new one is taken', async () => {
  const file = writeJwks(anna)
  const stage = await openSigned(file, {}, { scenario: { events: [reboot, { ...reboot, id: 'AAAAAAAA-0000-0000-0000-000000000000' }] } })
  await stage.send({ body: await signCompact(anna, await claimsFor(stage)) })
  await stage.told('ok')
  rewriteJwks(file, bob)
  await stage.send({ body: await signCompact(anna, await claimsFor(stage)) })
  await stage.told('unknown_key')
  await stage.send({ body: await signCompact(bob, await claimsFor(stage)), messageId: 'by-bob' })
  const told = await stage.event(({ data }) => data['messageId'] === 'by-bob')
  expect(told.data['code']).toBe('ok')
})

test('without its file nothing is approved', async () => {
  const stage = await openSigned('/nonexistent/approvers.jwks')
  expect(await refusal(stage, 'unknown_key', await signCompact(anna, await claimsFor(stage)))).toEqual(refused)
})
