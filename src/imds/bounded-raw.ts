import { z } from 'zod'
import type { Json } from '../../sinks/cloud-event.ts'
import { capUtf8 } from '../events/cap-utf8.ts'

/** Both keep what is remembered and published small, and the second keeps a hostile nesting from overflowing the stack of a serializer. */
const maxBytes = 8 * 1024
const maxLevels = 16

const json = z.json()

const within = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' || value === null || (levels > 0 && Object.values(value).every((member) => within(member, levels - 1)))

/** A JSON value as it came; one that is too large or too deep is replaced by `{ truncated: the beginning of its text }`. */
export function boundedRaw(value: unknown): Json {
  if (!within(value, maxLevels)) return { truncated: `(nested more than ${maxLevels} levels deep)` }
  const text = JSON.stringify(value) ?? ''
  const parsed = Buffer.byteLength(text) <= maxBytes ? json.safeParse(value) : undefined
  return parsed?.success === true ? parsed.data : { truncated: capUtf8(text, maxBytes) }
}
