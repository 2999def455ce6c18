import { z } from 'zod'
import { connectionOptions, connectionProblems, entityName } from './azure/connection-options.ts'
import { openAzureSink } from './azure/open.ts'
import { defineSink, type Sink, type SinkContext } from './contract.ts'
import { amqpEncoder, ownBody } from './azure/encoder.ts'

const { namespace, ...others } = connectionOptions

const options = z
  .strictObject({
    namespace,
    eventHub: entityName.optional().describe('Name of the event hub. Not needed where the connection string has an EntityPath.'),
    ...others,
  })
  .superRefine((given, context) => {
    for (const { path, message } of connectionProblems(given, { eventHub: given.eventHub })) {
      context.addIssue({ code: 'custom', path: [...path], message })
    }
  })

type EventHubsOptions = z.output<typeof options>

export default defineSink({
  type: 'event-hubs',
  summary: 'One message per event to an event hub',
  options,
  formats: ['cloudevents', 'azure-resource-log', 'ecs'],
  ownBody,
  open: openEventHubs,
})

async function openEventHubs(given: EventHubsOptions, context: SinkContext): Promise<Sink> {
  const encode = amqpEncoder(given, context.format)
  const { EventHubProducerClient } = await import('@azure/event-hubs')
  return await openAzureSink(given, context, {
    noun: 'event hub',
    names: { eventHub: given.eventHub },
    client(access, eventHub, clientOptions) {
      const more = { ...clientOptions, userAgent: context.agent }
      const producer =
        'credential' in access
          ? new EventHubProducerClient(access.namespace, eventHub, access.credential, more)
          : new EventHubProducerClient(access.connectionString, eventHub, more)
      return {
        // An empty batch asks for the largest size that the link allows, and so for the link.
        open: (abortSignal) => producer.createBatch({ abortSignal }),
        send(event, abortSignal) {
          const { body, contentType, properties } = encode(event)
          const data = { body, contentType, properties, messageId: event.id }
          return producer.sendBatch([data], { partitionKey: event.partitionkey, abortSignal })
        },
        close: () => producer.close(),
      }
    },
  })
}
