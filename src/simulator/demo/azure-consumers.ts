import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import { parseCloudEvent } from './webhook-receiver.ts'

export interface Consumer {
  close(): Promise<void>
}

/** Reads an event hub from its beginning, as a SIEM would, with the real SDK. */
export async function readEventHub(connectionString: string, eventHub: string, onEvent: (event: CloudEvent) => void): Promise<Consumer> {
  const { EventHubConsumerClient, earliestEventPosition } = await import('@azure/event-hubs')
  const client = new EventHubConsumerClient('$Default', connectionString, eventHub)
  const subscription = client.subscribe(
    {
      async processEvents(events) {
        for (const { body } of events) onEvent(cloudEventOf(body))
      },
      // The SDK reconnects by itself; the table at the end shows what is missing.
      async processError() {},
    },
    { startPosition: earliestEventPosition, maxBatchSize: 1, maxWaitTimeInSeconds: 60 },
  )
  return {
    async close() {
      await subscription.close()
      await client.close()
    },
  }
}

/** Reads a subscription of a topic in peek-lock, as operations tooling would, with the real SDK. */
export async function readSubscription(
  connectionString: string,
  topic: string,
  subscription: string,
  onEvent: (event: CloudEvent) => void,
): Promise<Consumer> {
  const { ServiceBusClient } = await import('@azure/service-bus')
  const client = new ServiceBusClient(connectionString)
  const receiver = client.createReceiver(topic, subscription)
  receiver.subscribe({
    async processMessage({ body }) {
      onEvent(cloudEventOf(body))
    },
    async processError() {},
  })
  return {
    async close() {
      await receiver.close()
      await client.close()
    },
  }
}

/** The SDKs parse a body that is JSON; what is none stays a Buffer. */
function cloudEventOf(body: unknown): CloudEvent {
  return parseCloudEvent(Buffer.isBuffer(body) ? JSON.parse(body.toString('utf8')) : body)
}
