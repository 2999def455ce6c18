import {
  EventHubConsumerClient,
  EventHubProducerClient,
  type EventPosition,
  type ReceivedEventData,
  type SubscribeOptions,
} from '@azure/event-hubs'
import { ServiceBusClient, type ServiceBusClientOptions } from '@azure/service-bus'
import { startBroker, type BrokerOptions } from '../../../src/simulator/broker/broker.ts'

// The SDKs import `node:process`, which opens stdin: a pipe that nobody reads, and that a search for leaks would find.
process.stdin.destroy()

/** One try, and soon an answer: what the forwarder does as well. */
export const impatient = { maxRetries: 0, timeoutInMs: 5_000 }

/** A broker and the clients of a test, closed together: `await using`. */
export async function openNamespace(entities: BrokerOptions['entities'], options: Omit<BrokerOptions, 'entities'> = {}) {
  const broker = await startBroker({ entities, ...options })
  const closers: (() => Promise<unknown>)[] = []
  return {
    broker,
    serviceBus(more: ServiceBusClientOptions = {}, connection = broker.connectionString()): ServiceBusClient {
      const client = new ServiceBusClient(connection, { retryOptions: impatient, ...more })
      closers.push(() => client.close())
      return client
    },
    producer(hub: string, connection = broker.connectionString(hub)): EventHubProducerClient {
      const client = new EventHubProducerClient(connection, { retryOptions: impatient })
      closers.push(() => client.close())
      return client
    },
    consumer(hub: string, group = '$Default'): EventHubConsumerClient {
      const client = new EventHubConsumerClient(group, broker.connectionString(hub), { retryOptions: impatient })
      closers.push(() => client.close())
      return client
    },
    /** A client of the test's own, to be closed with the rest. */
    closing<Client extends { close(): Promise<unknown> }>(client: Client): Client {
      closers.push(() => client.close())
      return client
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await broker.faults.clear()
      await Promise.allSettled(closers.map((close) => close()))
      await broker.close()
    },
  }
}

/** Reads `count` events of a partition, then stops. Rejects on the first error. */
export async function readEvents(
  client: EventHubConsumerClient,
  partition: string,
  startPosition: EventPosition,
  count: number,
  options: SubscribeOptions = {},
): Promise<ReceivedEventData[]> {
  const got: ReceivedEventData[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const subscription = client.subscribe(
    partition,
    {
      processEvents: async (events) => {
        got.push(...events)
        if (got.length >= count) resolve()
      },
      processError: async (error) => reject(error),
    },
    { startPosition, maxWaitTimeInSeconds: 0.05, ...options },
  )
  try {
    await promise
  } finally {
    await subscription.close()
  }
  return got
}

/** Rejects with the time-out of the test's own, so that a stuck wait names itself. */
export function within(milliseconds = 10_000): AbortSignal {
  return AbortSignal.timeout(milliseconds)
}
