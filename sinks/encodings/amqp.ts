import { attributesOf, type CloudEvent } from '../cloud-event.ts'
import type { EventFormat } from '../contract.ts'
import { ForeshockError } from '../error.ts'

/** What the encoding decides of an AMQP message. `body` is bytes: the Azure SDKs would encode a string or an object as JSON once more. */
export interface AmqpMessage {
  readonly body: Buffer
  readonly contentType: string
  readonly properties: Readonly<Record<string, string>>
}

/**
 * How events become AMQP messages: the whole of one as JSON, or its data alone. In both modes the attributes stand in the application properties
 * as well, where the filters of a broker see them; always as strings, because a JavaScript number would become an AMQP type that the binding does
 * not allow. `datacontenttype` is the content-type of the binary mode and no property of either. In another format than that of CloudEvents
 * there are no such properties: they would call the record a CloudEvent. Throws `sink_unusable` where binary mode is asked for there.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/amqp-protocol-binding.md; of the two prefixes that it allows,
 * `cloudEvents_` is the one that filters of Service Bus and JMS can spell.
 */
export function amqpEncoder(mode: 'structured' | 'binary', format: EventFormat): (event: CloudEvent) => AmqpMessage {
  const { name, contentType } = format
  if (name !== 'cloudevents' && mode === 'binary') {
    throw new ForeshockError(
      'sink_unusable',
      `\`mode: binary\` and \`format: ${name}\` exclude each other: each decides the whole body; leave out one`,
    )
  }
  if (mode === 'binary') {
    return (event) => ({
      body: Buffer.from(JSON.stringify(event.data)),
      contentType: event.datacontenttype,
      properties: propertiesOf(event),
    })
  }
  return (event) => ({
    body: Buffer.from(format.write(event)),
    contentType,
    properties: name === 'cloudevents' ? propertiesOf(event) : {},
  })
}

function propertiesOf(event: CloudEvent): Record<string, string> {
  const attributes = attributesOf(event).filter(([name]) => name !== 'datacontenttype')
  return Object.fromEntries(attributes.map(([name, value]) => [`cloudEvents_${name}`, value]))
}
