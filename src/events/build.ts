import type { AttributeValue, CloudEvent, JsonObject } from '../../sinks/cloud-event.ts'
import { ForeshockError } from '../../sinks/error.ts'
import { fromIso, toIso } from '../lifecycle/instant.ts'
import { forbidden } from './printable-text.ts'
import { dataschemaOf, type SchemaName } from './schema-uri.ts'

/** Structured JSON, in bytes: what every intermediary must forward. Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#size-limits */
export const maxEventBytes = 64 * 1024
const maxId = 128
/** RFC 3339 has years of four digits. */
const lastMoment = fromIso('9999-12-31T23:59:59.999Z')

/** What an event is made of; the rest follows. */
export interface EventParts {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly subject: string
  /** First observation, milliseconds since the epoch. */
  readonly at: number
  readonly schema: SchemaName
  readonly partitionkey: string
  /** An attribute without a value (null) is left out. */
  readonly extensions: Readonly<Record<string, AttributeValue | null>>
  readonly data: JsonObject
}

/**
 * The one place that makes a CloudEvent. Strings are trimmed; what is invalid after that is refused with `event_invalid`, never made to fit.
 */
export function buildEvent(parts: EventParts): CloudEvent {
  if (!(parts.at >= 0 && parts.at <= lastMoment)) throw invalid(parts, `expected a time in milliseconds since the epoch, got ${parts.at}`)
  const extensions: Record<string, AttributeValue> = {}
  for (const [name, value] of Object.entries(parts.extensions)) {
    if (value !== null) extensions[checkedName(parts, name)] = checkedValue(parts, name, value)
  }
  const text = (name: 'id' | 'source' | 'type' | 'subject' | 'partitionkey'): string => checkedText(parts, name, parts[name])
  const event: CloudEvent = {
    ...extensions,
    specversion: '1.0',
    id: text('id'),
    source: text('source'),
    type: text('type'),
    subject: text('subject'),
    time: toIso(parts.at),
    datacontenttype: 'application/json',
    dataschema: dataschemaOf(parts.schema),
    partitionkey: text('partitionkey'),
    data: parts.data,
  }
  if (event.id.length > maxId) throw invalid(parts, `expected an id of at most ${maxId} characters, got ${event.id.length}`)
  const bytes = eventBytes(event)
  if (bytes > maxEventBytes) throw invalid(parts, `expected at most ${maxEventBytes} bytes of structured JSON, got ${bytes}`)
  return event
}

/** The size of an event, or of a part of one, as structured JSON. */
export const eventBytes = (event: JsonObject): number => Buffer.byteLength(JSON.stringify(event))

const core = new Set(['specversion', 'id', 'source', 'type', 'subject', 'time', 'datacontenttype', 'dataschema', 'partitionkey', 'data'])

function checkedName(parts: EventParts, name: string): string {
  if (/^[a-z0-9]{1,20}$/.test(name) && !core.has(name)) return name
  throw invalid(parts, `expected an extension name of 1 to 20 characters a-z and 0-9, got ${JSON.stringify(name)}`)
}

function checkedValue(parts: EventParts, name: string, value: AttributeValue): AttributeValue {
  if (typeof value === 'string') return checkedText(parts, name, value)
  if (typeof value === 'boolean') return value
  // CloudEvents knows integers of 32 bits and no other numbers.
  if (Number.isInteger(value) && value === (value | 0)) return value
  throw invalid(parts, `expected ${name} to be a 32-bit integer, got ${value}`)
}

function checkedText(parts: EventParts, name: string, value: string): string {
  const text = value.trim()
  if (text === '') throw invalid(parts, `expected ${name} to be a text, got an empty one`)
  if (forbidden.test(text)) {
    throw invalid(parts, `expected ${name} without control characters, got ${JSON.stringify(text.slice(0, 200))}`)
  }
  if (name === 'source' && /[\s<>"{}|\\^`]|[^\x20-\x7e]/.test(text)) {
    throw invalid(parts, `expected the source to be a URI reference, got ${JSON.stringify(text.slice(0, 200))}`)
  }
  return text
}

const invalid = (parts: EventParts, problem: string): ForeshockError =>
  new ForeshockError('event_invalid', `the event ${JSON.stringify(parts.id.slice(0, 200))} (${parts.type}) cannot be built: ${problem}`)
