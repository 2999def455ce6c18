import { isUtf8 } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify } from 'yaml'
import type { Heard } from './ask.ts'

/** A frame as it is written, without what is default. */
export interface RecordedFrame {
  readonly atSeconds: number
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly document?: unknown
  readonly body?: string
  readonly bodyBase64?: string
  readonly noAnswer?: 'reset' | 'hang'
}

/** Headers that tell something about the answer, in the spelling in which they are replayed. Others may identify whom it was for. */
const kept = { 'content-type': 'Content-Type', etag: 'ETag', 'retry-after': 'Retry-After' }

/** The most readable form that gives the same bytes when it is replayed. */
export function frameOf(heard: Heard, atSeconds: number): RecordedFrame {
  if ('noAnswer' in heard) return { atSeconds, noAnswer: heard.noAnswer }
  const headers: Record<string, string> = {}
  for (const [name, spelling] of Object.entries(kept)) {
    const value = heard.headers[name]
    if (value !== undefined) headers[spelling] = value
  }
  return { atSeconds, ...(heard.status !== 200 && { status: heard.status }), headers, ...bodyOf(heard.body) }
}

function bodyOf(bytes: Buffer): Pick<RecordedFrame, 'document' | 'body' | 'bodyBase64'> {
  const text = bytes.toString()
  if (!isUtf8(bytes)) return { bodyBase64: bytes.toString('base64') }
  const document = documentOf(text)
  if (document !== undefined) return { document }
  return isDeepStrictEqual(parse(stringify(text, { lineWidth: 0 })), text) ? { body: text } : { bodyBase64: bytes.toString('base64') }
}

/** Structure only where JSON and YAML keep every byte of it: spacing, numbers, the order of keys, keys given twice. */
function documentOf(text: string): unknown {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
  if (JSON.stringify(document) !== text) return undefined
  return JSON.stringify(parse(stringify(document, { lineWidth: 0 }))) === text ? document : undefined
}
