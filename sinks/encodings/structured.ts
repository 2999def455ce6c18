import type { CloudEvent } from '../cloud-event.ts'

/** The media type of one event in the JSON format. */
export const structuredContentType = 'application/cloudevents+json; charset=utf-8'

/** Who, what and when first, as a person reads it. */
const leading = ['specversion', 'id', 'source', 'type', 'subject', 'time', 'datacontenttype', 'dataschema', 'partitionkey'] as const

/**
 * An event in the JSON format, on one line: the leading attributes, then the others by name, `data` last. The same event always gives the
 * same text, so that a stored line, a signature and a retry agree. `JSON.stringify` writes a lone surrogate as an escape, never as broken UTF-8.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
 */
export function structuredJson(event: CloudEvent): string {
  const known = new Set<string>([...leading, 'data'])
  const others = Object.keys(event)
    .filter((name) => !known.has(name))
    .toSorted()
  return JSON.stringify(Object.fromEntries([...leading, ...others, 'data'].map((name) => [name, event[name]])))
}
