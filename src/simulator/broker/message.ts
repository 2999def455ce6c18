import rhea, { type Message } from 'rhea'
import { dataOf, sectionCode, splitSections, withEntries, type Section } from './sections.ts'

/** One message as a sender handed it over: what the broker acts on, decoded, beside the bytes that it passes on. */
export interface AcceptedMessage {
  readonly raw: Buffer
  readonly sections: readonly Section[]
  readonly decoded: Message
  readonly messageId: string | null
  readonly sessionId: string | null
  /** Milliseconds; null for no limit. */
  readonly ttlMs: number | null
  /** Milliseconds since the epoch; null for at once. */
  readonly scheduledAt: number | null
  readonly partitionKey: string | null
}

/** The message format of a batch: each data section of the outer message is an encoded message. */
export const batchFormat = 0x80013700

/** The largest `ttl` that a header can hold stands for no limit. */
const maxUint = 0xffffffff

/** Throws where the bytes are no AMQP message. */
export function readMessage(raw: Buffer): AcceptedMessage {
  const sections = splitSections(raw)
  const decoded = decodeChecked(raw)
  const annotations = recordOf(decoded['message_annotations'])
  const ttl: unknown = decoded['ttl']
  const sessionId: unknown = decoded['group_id']
  const partitionKey = annotations['x-opt-partition-key']
  const scheduled = annotations['x-opt-scheduled-enqueue-time']
  return {
    raw,
    sections,
    decoded,
    messageId: idText(decoded['message_id']),
    sessionId: typeof sessionId === 'string' ? sessionId : null,
    ttlMs: typeof ttl === 'number' && ttl < maxUint ? ttl : null,
    scheduledAt: scheduled instanceof Date ? scheduled.getTime() : null,
    partitionKey: typeof partitionKey === 'string' ? partitionKey : null,
  }
}

/** Throws where the bytes are no AMQP message. */
export function decodeMessage(raw: Buffer): Message {
  // rhea's decoder is only safe with bytes that were looked through before.
  splitSections(raw)
  return decodeChecked(raw)
}

function decodeChecked(raw: Buffer): Message {
  // rhea leaves the body out where a message has none.
  return { body: undefined, ...rhea.message.decode(raw) }
}

/** The messages inside a batch, and the partition key that its envelope carries. */
export function readBatch(raw: Buffer): { messages: AcceptedMessage[]; partitionKey: string | null } {
  const envelope = splitSections(raw).filter((section) => section.code === sectionCode.data)
  const outer: unknown = recordOf(decodeChecked(raw)['message_annotations'])['x-opt-partition-key']
  return { messages: envelope.map((section) => readMessage(dataOf(section))), partitionKey: typeof outer === 'string' ? outer : null }
}

/** What the broker adds to a message when it delivers it. */
export interface DeliveryChanges {
  readonly deliveryCount?: number
  readonly annotations: Readonly<Record<string, unknown>>
  readonly applicationProperties?: Readonly<Record<string, unknown>>
  readonly deliveryAnnotations?: Readonly<Record<string, unknown>>
  readonly omitBody?: boolean
}

const bodyCodes: ReadonlySet<number> = new Set([sectionCode.data, sectionCode.sequence, sectionCode.value])

/** The message as it goes out: a header and annotations of the broker's, the rest as it came. */
export function encodeDelivery(message: AcceptedMessage, changes: DeliveryChanges): Buffer {
  const { decoded, sections } = message
  const fresh = splitSections(
    rhea.message.encode({
      durable: decoded['durable'],
      priority: decoded['priority'],
      ttl: decoded['ttl'],
      delivery_count: changes.deliveryCount ?? 0,
      delivery_annotations: changes.deliveryAnnotations,
      body: null,
    }),
  )
  const parts: (Buffer | null | undefined)[] = [
    fresh.find((section) => section.code === sectionCode.header)?.bytes,
    fresh.find((section) => section.code === sectionCode.deliveryAnnotations)?.bytes,
    withEntries(
      sectionCode.messageAnnotations,
      sections.find((section) => section.code === sectionCode.messageAnnotations),
      changes.annotations,
    ),
    sections.find((section) => section.code === sectionCode.properties)?.bytes,
  ]
  const application = sections.find((section) => section.code === sectionCode.applicationProperties)
  if (changes.applicationProperties === undefined) parts.push(application?.bytes)
  else parts.push(withEntries(sectionCode.applicationProperties, application, changes.applicationProperties))
  for (const section of sections) {
    if (section.code === sectionCode.footer || (bodyCodes.has(section.code) && changes.omitBody !== true)) parts.push(section.bytes)
  }
  return Buffer.concat(parts.filter((part) => part !== null && part !== undefined))
}

/** An AMQP map, as rhea gives it; empty where there is none. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A message id can be a string, ulong, uuid or binary: one text for each, distinct across types. */
function idText(id: unknown): string | null {
  if (typeof id === 'string') return id
  if (typeof id === 'number') return `#${id}`
  if (Buffer.isBuffer(id)) return `0x${id.toString('hex')}`
  return null
}
