import type { Json } from '../../sinks/cloud-event.ts'

/**
 * Canonical JSON: keys sorted by UTF-16 code unit, no white space, numbers and strings as ECMAScript writes them.
 *
 * Source: https://www.rfc-editor.org/rfc/rfc8785
 */
export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members: string[] = []
  for (const key of Object.keys(value).toSorted()) {
    const member = value[key]
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
  }
  return `{${members.join(',')}}`
}

/** `Array.isArray` does not narrow a readonly array away from the object beside it. */
const isArray = (value: Json): value is readonly Json[] => Array.isArray(value)
