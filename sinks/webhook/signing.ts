import { createHmac, createPrivateKey, sign as signWith, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { ForeshockError } from '../error.ts'
import { readSecret, secretSchema, type Secret } from '../secret.ts'

/** A text is checked with the configuration; what a file holds, when it is read. */
const checked = (problem: (text: string) => string | undefined): typeof secretSchema =>
  secretSchema.superRefine((secret, context) => {
    const message = typeof secret === 'string' ? problem(secret) : undefined
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

export const signingSchema = z
  .strictObject({
    secrets: z
      .array(checked((text) => problemOf(() => hmacKey(text))))
      .max(10)
      .default([])
      .describe('Secrets for `v1` (HMAC-SHA256), `whsec_` and base64 of 24 to 64 bytes; one signature each, so that they can be rotated.'),
    privateKey: checked((text) => problemOf(() => ed25519Key(text)))
      .optional()
      .describe('Key for `v1a` (ed25519), `whsk_` and base64 of the seed or the key pair, or a PKCS #8 PEM.'),
  })
  .refine(({ secrets, privateKey }) => secrets.length > 0 || privateKey !== undefined, 'expected `secrets` or a `privateKey`')
export type Signing = z.output<typeof signingSchema>

/** `timestamp` is that of this attempt, in milliseconds since the epoch. */
interface Signed {
  readonly id: string
  readonly timestamp: number
  readonly body: string
}

/**
 * The three headers of a signed request. Id and body are the same in every attempt, the timestamp is the attempt's own. Secrets are read
 * anew. Throws `config_invalid`, without the secret.
 *
 * Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export async function signatureHeaders({ id, timestamp, body }: Signed, { secrets, privateKey }: Signing): Promise<Record<string, string>> {
  const seconds = Math.floor(timestamp / 1000)
  const content = Buffer.from(`${id}.${seconds}.${body}`, 'utf8')
  const signatures: string[] = []
  for (const secret of secrets) {
    signatures.push(
      `v1,${createHmac('sha256', await readKey(secret, hmacKey))
        .update(content)
        .digest('base64')}`,
    )
  }
  if (privateKey !== undefined) {
    signatures.push(`v1a,${signWith(null, content, await readKey(privateKey, ed25519Key)).toString('base64')}`)
  }
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') }
}

async function readKey<Key>(secret: Secret, parse: (text: string) => Key): Promise<Key> {
  return parse((await readSecret(secret)).trim())
}

function hmacKey(text: string): Buffer {
  const key = fromBase64(text.replace(/^whsec_/, ''))
  if (key !== undefined && key.length >= 24 && key.length <= 64) return key
  throw new ForeshockError('config_invalid', 'signing.secrets: expected whsec_ and base64 of 24 to 64 random bytes')
}

/** What DER puts before the 32 bytes of the seed. Source: RFC 8410, section 7. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function ed25519Key(text: string): KeyObject {
  const key = text.startsWith('-----BEGIN') ? fromPem(text) : fromSeed(fromBase64(text.replace(/^whsk_/, '')))
  if (key?.asymmetricKeyType === 'ed25519') return key
  throw new ForeshockError('config_invalid', 'signing.privateKey: expected whsk_ and base64 of an ed25519 private key, or its PKCS #8 PEM')
}

/** 32 bytes are the seed; 64 are the seed and the public key, as libsodium has it. */
function fromSeed(bytes: Buffer | undefined): KeyObject | undefined {
  if (bytes?.length !== 32 && bytes?.length !== 64) return undefined
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, bytes.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
}

/** undefined for anything but a readable private key; the error of OpenSSL says nothing that helps. */
function fromPem(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

/** `Buffer.from` skips whatever is no base64; here that is a mistake. */
function fromBase64(text: string): Buffer | undefined {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

function problemOf(parse: () => unknown): string | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    if (error instanceof ForeshockError) return error.message.replace(/^[^:]*: /, '')
    throw error
  }
}
