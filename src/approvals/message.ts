import type { z } from 'zod'
import { readJsonBody } from '../imds/json-body.ts'
import { maxBodyBytes } from './gate.ts'
import { plainSchema, startRequestsSchema, structuredSchema } from './message-schema.ts'
import { unreadable, type ApprovalRequest, type Wanted } from './request.ts'

/** A message as the transport gives it. */
export interface Envelope {
  /** null where the body is no bytes, such as an AMQP sequence. */
  readonly body: Buffer | null
  readonly contentType: string | null
  readonly messageId: string | null
  /** Application properties: the attributes of a CloudEvent in binary mode. */
  readonly properties: Readonly<Record<string, unknown>>
}

type Content = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string }

/** The type of a CloudEvent that asks for an approval. */
const requestedType = (prefix: string): string => `${prefix}.approval.requested.v1`

/** Reads an unsigned message. What is wrong with it stands in `problem`. */
export function readPlainMessage(envelope: Envelope, prefix: string): ApprovalRequest {
  const { body, messageId } = envelope
  const bytes = body?.length ?? 0
  // Size first: what is too large is not even parsed.
  if (bytes > maxBodyBytes) return unreadable('queue', bytes, messageId, null)
  const content = contentOf(envelope, prefix)
  if (!content.ok) return unreadable('queue', bytes, messageId, content.problem)
  const read = isStartRequests(content.value) ? readStartRequests(content.value) : readPlain(content.value)
  return 'problem' in read
    ? unreadable('queue', bytes, messageId, read.problem)
    : { ...unreadable('queue', bytes, messageId, null), ...read }
}

/** The JSON that the message is about: the body, or the data of the CloudEvent around it. */
function contentOf({ body, contentType, properties }: Envelope, prefix: string): Content {
  if (body === null) return { ok: false, problem: 'expected bytes with a JSON object, got another kind of AMQP body' }
  const binaryType = properties['cloudEvents:type'] ?? properties['cloudEvents_type']
  if (binaryType !== undefined && binaryType !== requestedType(prefix)) return wrongType(binaryType, prefix)
  const json = readJsonBody(body)
  if (!json.ok) return { ok: false, problem: `expected a JSON object, ${json.problem}` }
  const structured = contentType?.toLowerCase().startsWith('application/cloudevents') === true
  if (!structured && !(isObject(json.value) && 'specversion' in json.value)) return { ok: true, value: json.value }
  const event = structuredSchema.safeParse(json.value)
  if (!event.success) return { ok: false, problem: `expected a CloudEvent: ${oneLine(event.error)}` }
  if (event.data.type !== requestedType(prefix)) return wrongType(event.data.type, prefix)
  if (event.data.data_base64 === undefined) return { ok: true, value: event.data.data }
  const inner = readJsonBody(Buffer.from(event.data.data_base64, 'base64'))
  return inner.ok ? inner : { ok: false, problem: `expected JSON in data_base64, ${inner.problem}` }
}

function wrongType(got: unknown, prefix: string): Content {
  return { ok: false, problem: `expected a CloudEvent of type ${requestedType(prefix)}, got ${JSON.stringify(got)?.slice(0, 200)}` }
}

type Read = Pick<ApprovalRequest, 'wanted'> & Partial<ApprovalRequest>

function readPlain(value: unknown): Read | { readonly problem: string } {
  const parsed = plainSchema.safeParse(value)
  if (!parsed.success) return { problem: oneLine(parsed.error) }
  const { command, eventId, digest = null, resources = null, target, requestedBy, reason = null, expiresAt = null } = parsed.data
  return {
    wanted: [{ command, eventId, digest, resources }],
    requestedBy,
    reason,
    audience: target === undefined ? null : [target],
    validity: { issuedAt: null, notBefore: null, expiresAt },
  }
}

function readStartRequests(value: unknown): Read | { readonly problem: string } {
  const parsed = startRequestsSchema.safeParse(value)
  if (!parsed.success) return { problem: oneLine(parsed.error) }
  const wanted = new Map<string, Wanted>()
  for (const { EventId } of parsed.data.StartRequests) {
    wanted.set(EventId.toLowerCase(), { command: 'approve', eventId: EventId, digest: null, resources: null })
  }
  return { wanted: [...wanted.values()] }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)
const isStartRequests = (value: unknown): boolean => isObject(value) && 'StartRequests' in value

const longestProblem = 1000

/** What zod found, in one line, without the values that came. */
export function oneLine(error: z.ZodError): string {
  const text = error.issues
    .slice(0, 5)
    .map(
      (issue) =>
        `${issue.path.length === 0 ? 'the message' : issue.path.map(String).join('.')}: ${issue.message.replace(/^Invalid (input|option): /, '')}`,
    )
    .join('; ')
  return text.length > longestProblem ? `${text.slice(0, longestProblem - 1)}…` : text
}
