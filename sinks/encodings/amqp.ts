import { attributesOf, type CloudEvent } from '../cloud-event.ts'
import { structuredContentType, structuredJson } from './structured.ts'

export type AmqpMode = 'structured' | 'binary'

/** What the name of an attribute is written behind, as the name of an application property. */
export type AttributePrefix = 'cloudEvents_' | 'cloudEvents:'

/** What the encoding decides of an AMQP message. `body` is bytes: the Azure SDKs would encode a string or an object as JSON once more. */
export interface AmqpMessage {
  readonly body: Buffer
  readonly contentType: string
  readonly properties: Readonly<Record<string, string>>
}

/**
 * An event as an AMQP message: the whole of it as JSON, or its data alone. In both modes the attributes stand in the application properties as
 * well, where the filters of a broker see them; always as strings, because a JavaScript number would become an AMQP type that the binding does not
 * allow. `datacontenttype` is the content-type of the binary mode and no property of either.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/amqp-protocol-binding.md; of the two prefixes that it allows,
 * `cloudEvents_` is the one that filters of Service Bus and JMS can spell.
 */
export function amqpMessage(event: CloudEvent, mode: AmqpMode, prefix: AttributePrefix = 'cloudEvents_'): AmqpMessage {
  const attributes = attributesOf(event).filter(([name]) => name !== 'datacontenttype')
  const properties = Object.fromEntries(attributes.map(([name, value]) => [`${prefix}${name}`, value]))
  if (mode === 'binary') return { body: Buffer.from(JSON.stringify(event.data)), contentType: event.datacontenttype, properties }
  return { body: Buffer.from(structuredJson(event)), contentType: structuredContentType, properties }
}
