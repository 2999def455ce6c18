import { z } from 'zod'
import { ForeshockError } from '../error.ts'
import { readSecret, secretSchema, type Secret } from '../secret.ts'

/** `token` of RFC 9110, section 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** What the sink or the connection sets itself. */
const reserved = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/** `ce-` carries the event, `webhook-` its signature and the validation handshake. */
const reservedPrefixes = ['ce-', 'webhook-']

export const headersSchema = z.record(
  z.string().superRefine((name, context) => {
    const message = nameProblem(name)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  }),
  secretSchema,
)

/**
 * The custom headers with their secrets read, names in lower case. Throws `config_invalid` for a file that cannot be read and for a value that
 * cannot stand in a header; the message names the header, never the value.
 */
export async function readHeaders(headers: Readonly<Record<string, Secret>>): Promise<Record<string, string>> {
  const read: Record<string, string> = {}
  for (const [name, secret] of Object.entries(headers)) {
    const value = await readSecret(secret)
    if (!/^[\t\x20-\x7e]*$/.test(value)) {
      throw new ForeshockError(
        'config_invalid',
        `the value of header ${name} is not printable ASCII on one line: look for a line end inside it`,
      )
    }
    read[name.toLowerCase()] = value
  }
  return read
}

function nameProblem(name: string): string | undefined {
  const lower = name.toLowerCase()
  if (!token.test(name)) return `expected the name of an HTTP header, got ${JSON.stringify(name)}`
  if (reserved.has(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))) {
    return `the header ${name} is set by the sink itself: remove it`
  }
  return undefined
}
