import type { CorrelationFilter } from './entities.ts'
import { recordOf, type AcceptedMessage } from './message.ts'

/** Whether a message passes the filter of a subscription. Values are compared as sent: 5 is not "5". */
export function passes(message: AcceptedMessage, filter: CorrelationFilter | undefined): boolean {
  if (filter === undefined) return true
  const { applicationProperties, ...system } = filter
  const { decoded } = message
  const actual: Readonly<Record<keyof typeof system, unknown>> = {
    subject: decoded['subject'],
    correlationId: decoded['correlation_id'],
    messageId: decoded['message_id'],
    to: decoded['to'],
    replyTo: decoded['reply_to'],
    sessionId: decoded['group_id'],
    contentType: decoded['content_type'],
  }
  const properties = recordOf(decoded['application_properties'])
  return (
    Object.entries(system).every(([name, value]) => value === undefined || Reflect.get(actual, name) === value) &&
    Object.entries(applicationProperties ?? {}).every(([name, value]) => properties[name] === value)
  )
}
