import { z } from 'zod'
import type { JsonObject } from '../../sinks/cloud-event.ts'
import { capUtf8 } from '../events/cap-utf8.ts'
import { printableText } from '../events/printable-text.ts'
import type { BrokenEntry, EventContent, EventsDocument, ScheduledEvent } from '../lifecycle/model.ts'
import { boundedRaw } from './bounded-raw.ts'
import { parseNotBefore } from './not-before.ts'

/** Ten events for each of the 1000 VMs that a placement group can hold: more than fits into the body, whose size is bounded too. */
const maxEntries = 10_000
/** Longest id, type, status and the like, in characters. The real ones have at most 36. */
const maxWord = 256
const maxDescriptionBytes = 4 * 1024

type Parsed = { readonly ok: true; readonly document: EventsDocument } | { readonly ok: false; readonly problem: string }

const word = printableText.max(maxWord)
/** Folded, ids are keys of plain objects in the remembered state, and this one key would not be kept as an own property. */
const eventId = word.transform((text) => text.trim()).refine((id) => id.toLowerCase() !== '__proto__')

const blank = z.union([z.null(), z.undefined(), z.string().regex(/^\s*$/)]).transform(() => null)
const optionalWord = z.union([blank, word])
const description = z.union([z.null(), z.undefined(), z.string()]).transform((text) => {
  return typeof text === 'string' ? capUtf8(text.toWellFormed(), maxDescriptionBytes) : null
})
const duration = z.union([z.int(), blank])
const notBefore = z.union([
  blank,
  z.string().transform((text, context) => {
    const time = parseNotBefore(text.trim())
    if (time === null) context.addIssue('expected RFC 1123 or ISO 8601')
    return time
  }),
])

const incarnation = z.union([z.number(), word]).nullable().catch(null)
const envelope = z.object({ DocumentIncarnation: z.unknown().optional(), Events: z.array(z.unknown()) })
const entryShape = z.record(z.string(), z.unknown())
const required = z.object({ EventId: eventId, EventType: word, EventStatus: word })

/**
 * Reads the JSON-parsed body of a 200 answer: an object with an `Events` array, of at most 2000 entries, is a document, anything else
 * (an error body, the camelCase relay shapes, an Event Grid event) is not and must leave every event as it was.
 * One bad entry does not hide the others.
 */
export function parseDocument(body: unknown): Parsed {
  const parsed = envelope.safeParse(body)
  if (!parsed.success) return { ok: false, problem: `expected an object with an "Events" array, got ${describe(body)}` }
  const { DocumentIncarnation, Events } = parsed.data
  if (Events.length > maxEntries) return { ok: false, problem: `expected at most ${maxEntries} Events, got ${Events.length}` }
  const events: ScheduledEvent[] = []
  const broken: BrokenEntry[] = []
  for (const entry of Events) {
    const read = readEntry(entry)
    if ('problem' in read) broken.push(read)
    else events.push(read)
  }
  return { ok: true, document: { incarnation: incarnation.parse(DocumentIncarnation), events, broken } }
}

function readEntry(entry: unknown): ScheduledEvent | BrokenEntry {
  const shape = entryShape.safeParse(entry)
  if (!shape.success || Array.isArray(entry)) {
    return {
      key: null,
      eventType: null,
      resources: [],
      problem: `expected an event object, got ${describe(entry)}`,
      raw: boundedRaw(entry),
    }
  }
  const fields = shape.data
  const head = required.safeParse(fields)
  const resources = readResources(fields['Resources'])
  if (!head.success) {
    return {
      key: eventId.safeParse(fields['EventId']).data?.toLowerCase() ?? null,
      eventType: word.safeParse(fields['EventType']).data ?? null,
      resources: resources.names,
      problem: head.error.issues.map(({ path: [field] }) => unusable(String(field), fields[String(field)])).join('; '),
      raw: boundedRaw(entry),
    }
  }
  const source = optionalWord.safeParse(fields['EventSource'])
  const start = notBefore.safeParse(fields['NotBefore'])
  const length = duration.safeParse(fields['DurationInSeconds'])
  const kind = optionalWord.safeParse(fields['ResourceType'])
  const text = description.safeParse(fields['Description'])
  const unreadable: (keyof EventContent)[] = []
  if (!source.success) unreadable.push('eventSource')
  if (!start.success) unreadable.push('notBefore')
  if (!resources.whole) unreadable.push('resources')
  if (!length.success) unreadable.push('durationInSeconds')
  const whole = unreadable.length === 0 && kind.success && text.success
  return {
    eventId: head.data.EventId,
    eventType: head.data.EventType,
    eventStatus: head.data.EventStatus,
    eventSource: source.data ?? null,
    notBefore: start.data ?? null,
    resources: resources.names,
    durationInSeconds: length.data ?? null,
    resourceType: kind.data ?? null,
    description: text.data ?? null,
    ...(whole ? {} : { raw: rawObject(fields) }),
    ...(unreadable.length === 0 ? {} : { unreadable }),
  }
}

/** Sorted, so that the order in which a replica lists them is no difference. `whole` is false where a part could not be read. */
function readResources(value: unknown): { names: string[]; whole: boolean } {
  if (value === undefined || value === null) return { names: [], whole: true }
  if (typeof value === 'string' && value.trim() === '') return { names: [], whole: true }
  const listed: readonly unknown[] = Array.isArray(value) ? value : [value]
  const names = listed.flatMap((name) => word.safeParse(name).data ?? [])
  return { names: names.toSorted(), whole: names.length === listed.length }
}

const unusable = (field: string, value: unknown): string =>
  `${field}: expected at most ${maxWord} printable characters, got ${describe(value)}`

function rawObject(fields: Record<string, unknown>): JsonObject {
  const raw = z.record(z.string(), z.json()).safeParse(boundedRaw(fields))
  return raw.success ? raw.data : {}
}

/** What came, in a few words: a body may be long or hold anything. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object') {
    const keys = Object.keys(value)
    const shown = keys.slice(0, 5).map((key) => JSON.stringify(capUtf8(key, 40)))
    return keys.length === 0 ? 'an empty object' : `an object with ${shown.join(', ')}${keys.length > 5 ? ', …' : ''}`
  }
  if (typeof value === 'string') return `the string ${JSON.stringify(capUtf8(value, 80))}`
  return typeof value === 'number' || typeof value === 'boolean' ? `the ${typeof value} ${value}` : `a ${typeof value}`
}
