import type { CloudEvent } from '../cloud-event.ts'
import type { EventFormat } from '../contract.ts'
import { amqpMessage, type AmqpMessage, type AmqpMode, type AttributePrefix } from '../encodings/amqp.ts'
import { ForeshockError } from '../error.ts'

/**
 * How events become messages, by mode and format. In another format than that of CloudEvents the attributes are no application properties: they
 * would call the record a CloudEvent. Throws `sink_unusable` where binary mode is asked for there.
 */
export function amqpEncoder(
  { mode, attributePrefix }: { readonly mode: AmqpMode; readonly attributePrefix: AttributePrefix },
  format: EventFormat,
): (event: CloudEvent) => AmqpMessage {
  const { name, contentType } = format
  if (name === 'cloudevents') return (event) => amqpMessage(event, mode, attributePrefix)
  if (mode === 'binary') {
    const message = `\`mode: binary\` and \`format: ${name}\` exclude each other: each decides the whole body; leave out one`
    throw new ForeshockError('sink_unusable', message)
  }
  return (event) => ({ body: Buffer.from(format.write(event)), contentType, properties: {} })
}
