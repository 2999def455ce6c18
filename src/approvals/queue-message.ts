import type { ServiceBusReceivedMessage } from '@azure/service-bus'
import type { Envelope } from './message.ts'

/** Azure's own limit; what other brokers take is cut. */
const maxId = 256

/** What the SDK received, as the parts that are judged. */
export function envelopeOf(message: ServiceBusReceivedMessage): Envelope {
  const { messageId, contentType, applicationProperties } = message
  return {
    body: bytesOf(message.body),
    contentType: typeof contentType === 'string' ? contentType : null,
    messageId: messageId === undefined || messageId === '' ? null : idText(messageId),
    properties: applicationProperties ?? {},
  }
}

/** Data sections come as bytes; some clients put the text into a value section. */
function bytesOf(body: unknown): Buffer | null {
  if (Buffer.isBuffer(body)) return body
  if (body instanceof Uint8Array) return Buffer.from(body)
  return typeof body === 'string' ? Buffer.from(body) : null
}

/** Milliseconds since the epoch; null where the message lives for ever. */
export function expiryOf({ expiresAtUtc }: ServiceBusReceivedMessage): number | null {
  const at = expiresAtUtc?.getTime() ?? Number.NaN
  return Number.isFinite(at) ? at : null
}

const idText = (id: string | number | Buffer): string => (Buffer.isBuffer(id) ? id.toString('hex') : String(id)).slice(0, maxId)

/** The same for every delivery of a message. */
export const deliveryOf = (entity: string, { sequenceNumber, lockToken }: ServiceBusReceivedMessage): string =>
  `${entity}#${sequenceNumber?.toString() ?? lockToken ?? 'unknown'}`
