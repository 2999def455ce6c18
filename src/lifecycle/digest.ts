import { createHash } from 'node:crypto'
import { canonicalJson } from './canonical-json.ts'
import type { EventContent } from './model.ts'

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
