import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompactSign, exportJWK, generateKeyPair, GeneralSign, type JWK } from 'jose'
import { onTestFinished } from 'vitest'

export interface Signer {
  readonly kid: string
  readonly alg: 'ES256' | 'EdDSA'
  readonly privateJwk: JWK
  readonly publicJwk: JWK
}

export async function newSigner(kid: string, alg: 'ES256' | 'EdDSA' = 'ES256'): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateJwk: { ...(await exportJWK(privateKey)), kid }, publicJwk: { ...(await exportJWK(publicKey)), kid } }
}

/** A JWKS file with the public keys of these. */
export function writeJwks(...signers: readonly Signer[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'foreshock-jwks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'approvers.jwks')
  rewriteJwks(file, ...signers)
  return file
}

export function rewriteJwks(file: string, ...signers: readonly Signer[]): void {
  writeFileSync(file, JSON.stringify({ keys: signers.map(({ publicJwk }) => publicJwk) }))
}

export const typ = 'foreshock-approval+jws'

/** In compact serialization; `header` and claims as given, right or wrong. */
export async function signCompact({ privateJwk, kid, alg }: Signer, claims: object, header: object = {}): Promise<Buffer> {
  const payload = Buffer.from(JSON.stringify(claims))
  const signed = await new CompactSign(payload).setProtectedHeader({ alg, kid, typ, ...header }).sign({ ...privateJwk, alg })
  return Buffer.from(signed)
}

/** In general JSON serialization, each signer with a sub of its own. */
export async function signGeneral(claims: object, ...signers: readonly (readonly [Signer, sub: string])[]): Promise<Buffer> {
  const jws = new GeneralSign(Buffer.from(JSON.stringify(claims)))
  for (const [{ privateJwk, kid, alg }, sub] of signers) {
    jws.addSignature({ ...privateJwk, alg }).setProtectedHeader({ alg, kid, typ, sub })
  }
  return Buffer.from(JSON.stringify(await jws.sign()))
}

/** A token of one's own making, part by part. */
export const forge = (header: object, claims: object, signature: Buffer | string = ''): Buffer =>
  Buffer.from([encode(header), encode(claims), Buffer.from(signature).toString('base64url')].join('.'))

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
