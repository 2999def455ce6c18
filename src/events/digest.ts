import { createHash } from 'node:crypto'
import type { Json } from '../../sinks/cloud-event.ts'
import type { EventContent } from '../lifecycle/model.ts'

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

/** SHA-256 of the UTF-8 text, 64 hex digits. */
export const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

/**
 * The whole digest of what an event says, 64 hex digits: equal for every observer, whatever the order of Resources. The first 16 stand in
 * the id of each event; an approval is bound to it.
 */
export function digestOf(content: EventContent): string {
  const { durationInSeconds, eventSource, eventStatus, eventType, notBefore, resources } = content
  return sha256(canonicalJson({ durationInSeconds, eventSource, eventStatus, eventType, notBefore, resources: resources.toSorted() }))
}

/** The first 16 hex digits of the digest. */
export const digest16 = (content: EventContent): string => digestOf(content).slice(0, 16)
