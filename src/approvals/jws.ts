import { z } from 'zod'
import { readJsonBody } from '../imds/json-body.ts'
import { oneLine } from './message.ts'

/** One signature of a JWS, not verified yet. */
export interface JwsSignature {
  /** Base64url, as signed. */
  readonly protected: string
  /** What `protected` says. */
  readonly header: Readonly<Record<string, unknown>>
  readonly signature: string
}

export interface Jws {
  /** Base64url, as signed. */
  readonly payload: string
  /** What `payload` says. */
  readonly content: unknown
  readonly signatures: readonly JwsSignature[]
}

export type ParsedJws = { readonly ok: true; readonly jws: Jws } | { readonly ok: false; readonly problem: string }

/** Each signature costs one elliptic curve operation, and nobody needs more people than this. */
const maxSignatures = 16
/** Keys come from the configuration alone: a header that brings or names a key of its own is an attack. `crit` asks for what we do not do. */
const forbidden = ['jku', 'x5u', 'x5c', 'x5t', 'jwk', 'crit', 'b64']

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/, 'expected base64url')
const generalSchema = z.strictObject({
  payload: base64url,
  signatures: z
    .array(
      z.strictObject({
        protected: base64url,
        header: z.record(z.string(), z.unknown()).optional(),
        // `alg: none` comes with none: the algorithm is to be the reason, not the shape.
        signature: z.string().regex(/^[A-Za-z0-9_-]*$/, 'expected base64url'),
      }),
    )
    .min(1)
    .max(maxSignatures),
})

/** Takes apart a JWS in compact or general JSON serialization. Nothing is believed yet. Source: RFC 7515, section 7 */
export function parseJws(body: Buffer): ParsedJws {
  const json = body[0] === 0x7b
  const shape = json ? readGeneral(body) : readCompact(body)
  if ('problem' in shape) return { ok: false, problem: shape.problem }
  const content = decode(shape.payload)
  if (content === undefined) return { ok: false, problem: 'expected a JWS whose payload is JSON' }
  const signatures: JwsSignature[] = []
  for (const one of shape.signatures) {
    const header = decode(one.protected)
    if (typeof header !== 'object' || header === null || Array.isArray(header)) {
      return { ok: false, problem: 'expected a JWS whose protected header is a JSON object' }
    }
    const bad = forbidden.find((name) => Object.hasOwn(header, name) || (one.header !== undefined && Object.hasOwn(one.header, name)))
    if (bad !== undefined) return { ok: false, problem: `expected no ${bad} in the header: keys come from the configuration alone` }
    signatures.push({ protected: one.protected, header: { ...header }, signature: one.signature })
  }
  return { ok: true, jws: { payload: shape.payload, content, signatures } }
}

type Shape = z.output<typeof generalSchema> | { readonly problem: string }

function readGeneral(body: Buffer): Shape {
  const json = readJsonBody(body)
  if (!json.ok) return { problem: `expected a JWS, ${json.problem}` }
  const parsed = generalSchema.safeParse(json.value)
  return parsed.success
    ? parsed.data
    : { problem: `expected a JWS with payload and signatures, as trust is signed: ${oneLine(parsed.error)}` }
}

function readCompact(body: Buffer): Shape {
  // ASCII alone is base64url; whatever else came does not match.
  const match = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\s*$/.exec(body.toString('latin1'))
  const [, header, payload, signature] = match ?? []
  if (header === undefined || payload === undefined || signature === undefined) {
    return { problem: 'expected a JWS in compact or general JSON serialization, as trust is signed' }
  }
  return { payload, signatures: [{ protected: header, signature }] }
}

function decode(base64: string): unknown {
  const json = readJsonBody(Buffer.from(base64, 'base64url'))
  return json.ok ? json.value : undefined
}
