import { readFile } from 'node:fs/promises'
import { CompactSign, GeneralSign } from 'jose'
import { z } from 'zod'
import { ForeshockError } from '../../sinks/error.ts'
import { typ } from './gate.ts'
import { oneLine } from './message.ts'

const keySchema = z.union([
  z.object({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string(),
    y: z.string(),
    d: z.string(),
    kid: z.string().min(1),
    alg: z.literal('ES256').default('ES256'),
  }),
  z.object({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string(),
    d: z.string(),
    kid: z.string().min(1),
    alg: z.literal('EdDSA').default('EdDSA'),
  }),
])

/** A private key of an approver, as `keygen` writes it. */
export type SigningKey = z.output<typeof keySchema>

export async function readSigningKey(file: string): Promise<SigningKey> {
  let text
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    throw new ForeshockError('usage', `the key file ${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new ForeshockError('usage', `expected a private JWK in ${file}, as foreshock keygen writes it, got no JSON`, { cause })
  }
  const parsed = keySchema.safeParse(json)
  if (!parsed.success) {
    throw new ForeshockError('usage', `expected a private JWK (P-256 or Ed25519) with a kid in ${file}: ${oneLine(parsed.error)}`)
  }
  return parsed.data
}

/** Signs an approval: compact with one key, general JSON with several, each signer with a sub of its own in its header. */
export async function sign(claims: object, signers: readonly { readonly key: SigningKey; readonly subject: string }[]): Promise<Buffer> {
  const payload = Buffer.from(JSON.stringify(claims))
  const header = ({ key, subject }: (typeof signers)[number]) => ({ alg: key.alg, kid: key.kid, typ, sub: subject })
  const [only] = signers
  if (signers.length === 1 && only !== undefined)
    return Buffer.from(await new CompactSign(payload).setProtectedHeader(header(only)).sign(only.key))
  const jws = new GeneralSign(payload)
  for (const signer of signers) jws.addSignature(signer.key).setProtectedHeader(header(signer))
  return Buffer.from(JSON.stringify(await jws.sign()))
}
