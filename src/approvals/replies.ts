import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusSender } from '@azure/service-bus'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import type { SinkLog } from '../../sinks/contract.ts'
import { amqpMessage } from '../../sinks/encodings/amqp.ts'
import { lineOf } from '../../sinks/azure/failures.ts'
import { within } from './service-bus.ts'

const timeoutMs = 5000
const closeMs = 1000
/** Whoever sends may name a queue that does not exist, a new one each time. */
const maxSenders = 16
const entityName = /^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9_])?$/

export interface Replies {
  /** Sends each event to the queue that the message names; nothing where it names none. A reply that fails is told and given up. */
  send(message: ServiceBusReceivedMessage, events: readonly CloudEvent[]): Promise<void>
  close(): Promise<void>
}

/** Replies go to entities of the same namespace alone, and never back to where approvals come from. */
export function createReplies(client: ServiceBusClient, ownEntity: string, log: SinkLog): Replies {
  const senders = new Map<string, ServiceBusSender>()

  const senderFor = async (entity: string): Promise<ServiceBusSender> => {
    const known = senders.get(entity)
    if (known !== undefined) return known
    const [oldest] = senders
    if (oldest !== undefined && senders.size >= maxSenders) {
      senders.delete(oldest[0])
      await within(closeMs, () => oldest[1].close())
    }
    const sender = client.createSender(entity)
    senders.set(entity, sender)
    return sender
  }

  return {
    async send(message, events) {
      const { replyTo, replyToSessionId, messageId } = message
      if (replyTo === undefined || replyTo === '' || events.length === 0) return
      if (!entityName.test(replyTo) || replyTo.toLowerCase() === ownEntity.toLowerCase()) {
        log.warn(
          { replyTo: replyTo.slice(0, 300) },
          'no reply is sent there: expected the name of another queue or topic of this namespace',
        )
        return
      }
      const sender = await senderFor(replyTo)
      for (const event of events) {
        const { body, contentType, properties } = amqpMessage(event, 'structured')
        try {
          await sender.sendMessages(
            {
              body,
              contentType,
              applicationProperties: { ...properties },
              messageId: event.id,
              subject: event.type,
              ...(messageId === undefined ? {} : { correlationId: messageId }),
              ...(replyToSessionId === undefined ? {} : { sessionId: replyToSessionId, replyToSessionId }),
            },
            { abortSignal: AbortSignal.timeout(timeoutMs) },
          )
        } catch (error) {
          log.warn({ replyTo, id: event.id, problem: lineOf(error) }, 'a reply could not be sent; the event goes to the sinks all the same')
          senders.delete(replyTo)
          await within(closeMs, () => sender.close())
          return
        }
      }
    },
    async close() {
      await Promise.all([...senders.values()].map((sender) => within(closeMs, () => sender.close())))
      senders.clear()
    },
  }
}
