import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { signatureHeaders, signingSchema } from '../../../sinks/webhook/signing.ts'

/** The vector that the libraries of Standard Webhooks share. */
const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  signed: { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330_000, body: '{"test": 2432232314}' },
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const otherSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** RFC 8032, section 7.1, test 1. */
const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
const publicBytes = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
const publicKey = createPublicKey({
  key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicBytes]),
  format: 'der',
  type: 'spki',
})

const sign = (signing: object, signed = vector.signed): ReturnType<typeof signatureHeaders> =>
  signatureHeaders(signed, signingSchema.parse(signing))
const signaturesOf = (headers: Record<string, string>): string[] => (headers['webhook-signature'] ?? '').split(' ')

describe('a v1 signature', () => {
  it('holds the shared vector', async () => {
    expect(await sign({ secrets: [vector.secret] })).toEqual({
      'webhook-id': vector.signed.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': vector.signature,
    })
  })

  it('is verified by the reference library, over Unicode too', async () => {
    const signed = { id: 'a:scheduled:1d105773e80d3ccc', timestamp: Date.now(), body: '{"data":"Größe € 😀"}' }
    const headers = await sign({ secrets: [vector.secret] }, signed)
    expect(new Webhook(vector.secret).verify(signed.body, headers)).toEqual({ data: 'Größe € 😀' })
    expect(() => new Webhook(vector.secret).verify(`${signed.body} `, headers)).toThrow('No matching signature')
    expect(() => new Webhook(otherSecret).verify(signed.body, headers)).toThrow('No matching signature')
  })

  it('comes once for each secret, so that a receiver that knows either verifies it', async () => {
    const signed = { ...vector.signed, timestamp: Date.now() }
    const headers = await sign({ secrets: [otherSecret, vector.secret] }, signed)
    expect(signaturesOf(headers)).toHaveLength(2)
    for (const secret of [otherSecret, vector.secret])
      expect(new Webhook(secret).verify(signed.body, headers)).toEqual({ test: 2_432_232_314 })
  })

  it('takes a secret without its prefix', async () => {
    expect(await sign({ secrets: [vector.secret.slice(6)] })).toMatchObject({ 'webhook-signature': vector.signature })
  })

  it('changes with the attempt, while id and body do not', async () => {
    const [first, second] = [
      await sign({ secrets: [vector.secret] }),
      await sign({ secrets: [vector.secret] }, { ...vector.signed, timestamp: 1_614_265_331_000 }),
    ]
    expect(second['webhook-id']).toBe(first['webhook-id'])
    expect(second['webhook-timestamp']).toBe('1614265331')
    expect(second['webhook-signature']).not.toBe(first['webhook-signature'])
  })
})

describe('a v1a signature', () => {
  const content = Buffer.from(`${vector.signed.id}.1614265330.${vector.signed.body}`)
  const verified = (headers: Record<string, string>, key = publicKey): boolean =>
    verify(null, content, key, Buffer.from(signaturesOf(headers).at(-1)?.replace(/^v1a,/, '') ?? '', 'base64'))

  it.each([
    ['the seed', seed],
    ['seed and public key', Buffer.concat([seed, publicBytes])],
  ])('is made with whsk_ and %s', async (_, key) => {
    const headers = await sign({ privateKey: `whsk_${key.toString('base64')}` })
    expect(headers['webhook-signature']).toMatch(/^v1a,/)
    expect(verified(headers)).toBe(true)
  })

  it('is made with a PEM, as openssl writes it', async () => {
    const pair = generateKeyPairSync('ed25519')
    const headers = await sign({ privateKey: pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) })
    expect(verified(headers, pair.publicKey)).toBe(true)
    expect(verified(headers)).toBe(false)
  })

  it('stands beside those of the secrets', async () => {
    const headers = await sign({ secrets: [vector.secret], privateKey: `whsk_${seed.toString('base64')}` })
    expect(signaturesOf(headers).map((signature) => signature.split(',')[0])).toEqual(['v1', 'v1a'])
    expect(signaturesOf(headers)[0]).toBe(vector.signature)
  })
})

describe('a secret in a file', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'foreshock-signing-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is read for each request, so that it can be rotated', async () => {
    const file = join(folder, 'secret')
    await writeFile(file, `${otherSecret}\n`)
    const before = await sign({ secrets: [{ file }] })
    await writeFile(file, `${vector.secret}\n`)
    expect(await sign({ secrets: [{ file }] })).toMatchObject({ 'webhook-signature': vector.signature })
    expect(before['webhook-signature']).not.toBe(vector.signature)
  })

  it.each([
    ['secrets', 'hunter2-is-no-secret'],
    ['privateKey', 'hunter2-is-no-key'],
  ])('that is none is told without it (%s)', async (option, text) => {
    const file = join(folder, 'wrong')
    await writeFile(file, text)
    const failed = sign({ [option]: option === 'secrets' ? [{ file }] : { file } })
    await expect(failed).rejects.toMatchObject({ code: 'config_invalid', message: expect.not.stringContaining('hunter2') })
  })
})

function problemsOf(signing: object): string {
  const parsed = signingSchema.safeParse(signing)
  return parsed.success ? '' : JSON.stringify(parsed.error.issues)
}

describe('the option `signing`', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' })

  it.each([
    ['nothing', {}, 'expected `secrets` or a `privateKey`'],
    ['a short secret', { secrets: [`whsec_${Buffer.alloc(23).toString('base64')}`] }, '24 to 64'],
    ['a long secret', { secrets: [`whsec_${Buffer.alloc(65).toString('base64')}`] }, '24 to 64'],
    ['a secret that is no base64', { secrets: ['whsec_hunter2-hunter2-hunter2-hunter2-hunter2'] }, '24 to 64'],
    ['a public key', { privateKey: `whpk_${publicBytes.toString('base64')}` }, 'whsk_'],
    ['an RSA key', { privateKey: rsa }, 'ed25519'],
    ['a broken PEM', { privateKey: '-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----' }, 'PKCS #8'],
  ])('refuses %s, and does not repeat it', (_, signing, message) => {
    expect(problemsOf(signing)).toContain(message)
    expect(problemsOf(signing)).not.toContain('hunter2')
  })
})
