import { readFile } from 'node:fs/promises'
import { calculateJwkThumbprint, importJWK, type CryptoKey } from 'jose'
import { z } from 'zod'
import type { SignatureKey } from './request.ts'

/** `trust.keys` of the configuration, by kid. */
export type KeyLimits = Readonly<
  Record<
    string,
    {
      readonly issuers?: readonly string[] | undefined
      readonly eventTypes?: readonly string[] | undefined
      readonly audiences?: readonly string[] | undefined
    }
  >
>

interface VerifyingKey extends SignatureKey {
  readonly key: CryptoKey
}

export interface Keys {
  /** By kid. */
  readonly byId: ReadonlyMap<string, VerifyingKey>
  /** Why there are none, or fewer than the file has; null where all is well. */
  readonly problem: string | null
}

export interface KeySet {
  /** The keys as the file has them now. Never rejects: without a file there are no keys, so nothing is approved. */
  current(): Promise<Keys>
}

const jwkSchema = z.union([
  z.looseObject({ kty: z.literal('EC'), crv: z.literal('P-256'), x: z.string(), y: z.string(), kid: z.string().min(1) }),
  z.looseObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), kid: z.string().min(1) }),
])
const jwksSchema = z.object({ keys: z.array(z.unknown()).max(1000) })

/**
 * The public keys of the approvers, from a JWKS file. The file is read for every message and taken apart when its text has changed, so that a key
 * that was removed is refused from that moment on; a file that cannot be read is an empty one.
 */
export function createKeySet(file: string, limits: KeyLimits, warn: (problem: string) => void): KeySet {
  let known: { readonly text: string; readonly keys: Promise<Keys> } | undefined
  let told: string | null = null

  const load = async (): Promise<Keys> => {
    let text
    try {
      text = await readFile(file, 'utf8')
    } catch (error) {
      return { byId: new Map(), problem: `the JWKS file ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}` }
    }
    if (known?.text !== text) known = { text, keys: parseKeys(text, file, limits) }
    return await known.keys
  }

  return {
    async current() {
      const keys = await load()
      if (keys.problem !== null && keys.problem !== told) warn(keys.problem)
      told = keys.problem
      return keys
    },
  }
}

async function parseKeys(text: string, file: string, limits: KeyLimits): Promise<Keys> {
  const parsed = jwksSchema.safeParse(jsonOf(text))
  if (!parsed.success) return { byId: new Map(), problem: `expected a JWKS, {"keys": […]}, in ${file}` }
  const byId = new Map<string, VerifyingKey>()
  const problems: string[] = []
  for (const [index, entry] of parsed.data.keys.entries()) {
    const jwk = jwkSchema.safeParse(entry)
    if (!jwk.success) {
      problems.push(`keys[${index}]: expected a public key with a kid, EC P-256 or OKP Ed25519`)
      continue
    }
    const { kid, kty } = jwk.data
    if ('d' in jwk.data) {
      problems.push(`keys[${index}]: this is a private key, which belongs to its owner alone: replace it, and give only its public part`)
      continue
    }
    if (byId.has(kid)) {
      problems.push(`keys[${index}]: the kid ${JSON.stringify(kid)} stands there twice`)
      continue
    }
    const alg = kty === 'EC' ? 'ES256' : 'EdDSA'
    try {
      const { issuers = null, eventTypes = null, audiences = null } = limits[kid] ?? {}
      const imported = await publicKey(jwk.data)
      byId.set(kid, { ...imported, alg, issuers, eventTypes, audiences })
    } catch (error) {
      problems.push(`keys[${index}]: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  for (const kid of Object.keys(limits)) {
    if (!byId.has(kid)) problems.push(`trust.keys has limits for ${JSON.stringify(kid)}, which the file does not have`)
  }
  return { byId, problem: problems.length === 0 ? null : `${file}: ${problems.join('; ')}` }
}

/** Whatever else stands in the entry (`use`, `key_ops`, certificates) is left aside. */
async function publicKey(jwk: z.output<typeof jwkSchema>): Promise<{ readonly key: CryptoKey; readonly thumbprint: string }> {
  if (jwk.kty === 'EC') {
    const part = { kty: jwk.kty, crv: jwk.crv, x: jwk.x, y: jwk.y }
    return { key: await importJWK(part, 'ES256'), thumbprint: await calculateJwkThumbprint(part) }
  }
  const part = { kty: jwk.kty, crv: jwk.crv, x: jwk.x }
  return { key: await importJWK(part, 'EdDSA'), thumbprint: await calculateJwkThumbprint(part) }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
