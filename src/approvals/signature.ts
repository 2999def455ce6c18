import { errors, flattenedVerify, type CryptoKey } from 'jose'
import type { Keys, KeySet } from './key-set.ts'
import { maxBodyBytes } from './gate.ts'
import { parseJws, type Jws, type JwsSignature } from './jws.ts'
import { oneLine, type Envelope } from './message.ts'
import { claimsSchema, type Claims } from './message-schema.ts'
import { unreadable, type ApprovalRequest, type Signature } from './request.ts'

/** Reads and verifies a signed message. Nothing but the configured file is asked for keys. */
export async function readSignedMessage({ body, messageId }: Envelope, keySet: KeySet): Promise<ApprovalRequest> {
  const bytes = body?.length ?? 0
  // Who sent a message that does not say who signed it is not known: its id is the broker's affair, not ours.
  const refuse = (problem: string | null): ApprovalRequest => ({ ...unreadable('queue', bytes, messageId, problem), replayId: null })
  if (bytes > maxBodyBytes) return refuse(null)
  if (body === null) return refuse('expected bytes with a JWS, as trust is signed, got another kind of AMQP body')
  const parsed = parseJws(body)
  if (!parsed.ok) return refuse(parsed.problem)
  const claims = claimsSchema.safeParse(parsed.jws.content)
  if (!claims.success) return refuse(`expected the claims of an approval: ${oneLine(claims.error)}`)
  const keys = await keySet.current()
  const signatures = await Promise.all(parsed.jws.signatures.map((one) => check(parsed.jws, one, claims.data, keys)))
  if (signatures.some(({ subject }) => subject === null)) return refuse('expected a sub, in the payload or in every protected header')
  const { iss, aud, jti, iat, nbf = null, exp, evt } = claims.data
  const { command, eventId, digest, resources = null, reason = null } = evt
  return {
    via: 'queue',
    bytes,
    problem: null,
    wanted: [{ command, eventId, digest, resources }],
    requestedBy: [...new Set(signatures.map(({ subject }) => subject))].join(', '),
    reason,
    messageId: messageId ?? jti,
    // Issuers number their tokens each for itself.
    replayId: JSON.stringify([iss, jti]),
    audience: aud,
    validity: { issuedAt: iat, notBefore: nbf, expiresAt: exp },
    signed: { issuer: iss, signatures },
  }
}

async function check(jws: Jws, one: JwsSignature, claims: Claims, keys: Keys): Promise<Signature> {
  const { typ, alg, kid: named, sub } = one.header
  const kid = typeof named === 'string' ? named.slice(0, 256) : null
  const key = kid === null ? undefined : keys.byId.get(kid)
  // The header is signed by its own key alone, so its sub says who this signer is; the payload is the same for all.
  const subject = typeof sub === 'string' && sub.trim() !== '' ? sub.trim().slice(0, 256) : (claims.sub ?? null)
  const valid = key !== undefined && key.alg === alg && (await verifies(jws, one, key.key, key.alg))
  return { typ, alg, kid, subject, key: key ?? null, valid }
}

async function verifies({ payload }: Jws, { protected: header, signature }: JwsSignature, key: CryptoKey, alg: string): Promise<boolean> {
  try {
    await flattenedVerify({ payload, protected: header, signature }, key, { algorithms: [alg] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    throw error
  }
}
