import type { CloudEvent } from '../cloud-event.ts'
import type { EventFormat } from '../contract.ts'
import { amqpMessage, type AmqpMessage, type AmqpMode, type AttributePrefix } from '../encodings/amqp.ts'

/** Binary mode is one of CloudEvents. */
export const ownBody = ({ mode }: { readonly mode: AmqpMode }): string | undefined => (mode === 'binary' ? 'mode: binary' : undefined)

/**
 * How events become messages, by mode and format. In another format than that of CloudEvents the attributes are no application properties: they
 * would call the record a CloudEvent.
 */
export function amqpEncoder(
  { mode, attributePrefix }: { readonly mode: AmqpMode; readonly attributePrefix: AttributePrefix },
  format: EventFormat,
): (event: CloudEvent) => AmqpMessage {
  const { name, contentType } = format
  if (name === 'cloudevents') return (event) => amqpMessage(event, mode, attributePrefix)
  return (event) => ({ body: Buffer.from(format.write(event)), contentType, properties: {} })
}
