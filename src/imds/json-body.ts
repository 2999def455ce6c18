import { excerpt } from './excerpt.ts'
import type { FailureReason } from './failure.ts'

export type JsonBody =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: FailureReason; readonly problem: string }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The body of a 200 as JSON. Stricter than what HTTP clients offer: they strip a byte order mark and put U+FFFD for broken UTF-8, so a
 * damaged body would pass as an intact one.
 */
export function readJsonBody(body: Buffer): JsonBody {
  if (body.length === 0) return refuse('empty_body', 'got an empty body')
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return refuse('not_json', 'got a byte order mark before the text')
  const text = decode(body)
  if (text === undefined) return refuse('not_json', `got bytes that are not UTF-8: ${excerpt(body)}`)
  const trimmed = text.trim()
  if (trimmed === '') return refuse('empty_body', 'got a blank body')
  try {
    const value: unknown = JSON.parse(text)
    return { ok: true, value }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const cut = trimmed.startsWith('{') && !trimmed.endsWith('}')
    return cut
      ? refuse('truncated', `got JSON that ends after ${body.length} bytes in the middle`)
      : refuse('not_json', `got ${body.length} bytes that are not JSON: ${excerpt(body)}`)
  }
}

function decode(body: Buffer): string | undefined {
  try {
    return utf8.decode(body)
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

function refuse(reason: FailureReason, problem: string): JsonBody {
  return { ok: false, reason, problem }
}
