import { isUtf8 } from 'node:buffer'
import { parse, stringify } from 'yaml'
import { z } from 'zod'
import type { Heard } from './ask.ts'
import { frameBody, frameSchema } from './scenario-frame.ts'

/** Headers that tell something about the answer, in the spelling in which they are replayed. Others may identify whom it was for. */
const keptHeaders = { 'content-type': 'Content-Type', etag: 'ETag', 'retry-after': 'Retry-After' }

/** An answer as an item of a scenario's `documents`, in the most readable form that gives the same bytes when it is replayed. */
export function recordedFrame(heard: Heard, atSeconds: number): string {
  if ('noAnswer' in heard) return item({ atSeconds, noAnswer: heard.noAnswer })
  const frame = { atSeconds, ...(heard.status !== 200 && { status: heard.status }), headers: headersOf(heard) }
  for (const body of readableForms(heard.body)) {
    const text = item({ ...frame, ...body })
    if (replayed(text).equals(heard.body)) return text
  }
  return item({ ...frame, bodyBase64: heard.body.toString('base64') })
}

function headersOf({ headers }: { headers: Readonly<Record<string, string>> }): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, spelling] of Object.entries(keptHeaders)) {
    const value = headers[name]
    if (value !== undefined) kept[spelling] = value
  }
  return kept
}

/** Structure loses spacing, spelling of numbers and keys given twice; text loses what is not UTF-8. */
function readableForms(bytes: Buffer): { document?: unknown; body?: string }[] {
  if (!isUtf8(bytes)) return []
  const body = bytes.toString()
  try {
    return [{ document: JSON.parse(body) }, { body }]
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return [{ body }]
  }
}

/** Only `\n` ends a line here: other line separators stand inside a text. */
function item(frame: Record<string, unknown>): string {
  const lines = stringify([frame], { lineWidth: 0 }).split('\n')
  return lines.map((line) => (line === '' ? line : `  ${line}`)).join('\n')
}

const oneFrame = z.object({ documents: z.tuple([frameSchema]) })

function replayed(text: string): Buffer {
  return frameBody(oneFrame.parse(parse(`documents:\n${text}`)).documents[0])
}
