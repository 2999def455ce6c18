import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Entities } from './entities.ts'
import { audiencePath } from './address.ts'

export const allRights = ['Send', 'Listen', 'Manage'] as const
export type Right = (typeof allRights)[number]

/** What a token allows, or why it does not. */
export type Grant =
  | { readonly ok: true; readonly expiresAt: number; readonly rights: readonly Right[] }
  | { readonly ok: false; readonly why: string }

/**
 * Checks a Shared Access Signature, `SharedAccessSignature sr={uri}&sig={base64}&se={unix seconds}&skn={key name}`, against the audience of
 * the put-token request. The signature can only be verified against a declared key; without declared keys any signature is taken.
 *
 * Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-sas
 */
export function checkSignature(token: string, audience: string, keys: Entities['keys'], now: number): Grant {
  const prefix = 'SharedAccessSignature '
  if (!token.startsWith(prefix)) return refused('the token does not begin with "SharedAccessSignature "')
  const fields = new Map<string, string>()
  for (const part of token.slice(prefix.length).split('&')) {
    const at = part.indexOf('=')
    if (at > 0) fields.set(part.slice(0, at), part.slice(at + 1))
  }
  const [resource, signature, expiry, keyName] = ['sr', 'sig', 'se', 'skn'].map((name) => fields.get(name))
  if (!resource || !signature || !expiry || !keyName) return refused('the token lacks one of sr, sig, se and skn')
  const expiresAt = Number(expiry) * 1000
  if (!Number.isSafeInteger(expiresAt)) return refused(`se must be Unix seconds, got ${expiry}`)
  if (expiresAt <= now) return refused(`the token expired at ${new Date(expiresAt).toISOString()}`)
  const signedFor = decode(resource)
  if (signedFor === null || !covers(audiencePath(signedFor), audiencePath(audience))) {
    return refused(`the token is for ${signedFor ?? resource}, not for ${audience}`)
  }
  if (keys.length === 0) return { ok: true, expiresAt, rights: allRights }
  const key = keys.find((declared) => declared.name === decode(keyName))
  if (key === undefined) return refused(`there is no key ${decode(keyName) ?? keyName}`)
  const expected = createHmac('sha256', key.key).update(`${resource}\n${expiry}`).digest()
  const got = Buffer.from(decode(signature) ?? '', 'base64')
  if (got.length !== expected.length || !timingSafeEqual(got, expected)) return refused('the signature does not fit the key')
  return { ok: true, expiresAt, rights: key.rights }
}

/** Whether a grant for `granted` reaches `wanted`: the same path or one below it. Both lower-cased. */
export function covers(granted: string, wanted: string): boolean {
  return granted === '' || wanted === granted || wanted.startsWith(`${granted}/`)
}

function refused(why: string): Grant {
  return { ok: false, why }
}

/** Null where the text is not well encoded. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return null
    throw error
  }
}
