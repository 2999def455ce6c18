import { EventHubProducerClient } from '@azure/event-hubs'
import { ServiceBusClient } from '@azure/service-bus'
import type { CloudEvent } from '../sinks/cloud-event.ts'
import { amqpMessage } from '../sinks/encodings/amqp.ts'

export interface BareSender {
  send(event: CloudEvent): Promise<void>
  close(): Promise<void>
}

/** The SDK as its documentation shows it, sending the same messages, over one link that is open. */
export async function openBareSender(entity: 'hub' | 'topic', connectionString: string): Promise<BareSender> {
  if (entity === 'hub') {
    const producer = new EventHubProducerClient(connectionString, entity)
    await producer.createBatch()
    return {
      async send(event) {
        const { body, contentType, properties } = amqpMessage(event, 'structured')
        await producer.sendBatch([{ body, contentType, properties, messageId: event.id }], { partitionKey: event.partitionkey })
      },
      close: () => producer.close(),
    }
  }
  const client = new ServiceBusClient(connectionString)
  const sender = client.createSender(entity)
  await sender.createMessageBatch()
  return {
    async send(event) {
      const { body, contentType, properties } = amqpMessage(event, 'structured')
      await sender.sendMessages({
        body,
        contentType,
        applicationProperties: properties,
        messageId: event.id,
        subject: event.type,
        correlationId: event.partitionkey,
        timeToLive: 3_600_000,
        partitionKey: event.partitionkey,
      })
    },
    close: () => client.close(),
  }
}
