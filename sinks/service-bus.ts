import { z } from 'zod'
import { connectionOptions, connectionProblems, entityName } from './azure/connection-options.ts'
import { openAzureSink } from './azure/open.ts'
import type { CloudEvent } from './cloud-event.ts'
import { defineSink, type Sink, type SinkContext } from './contract.ts'
import { amqpEncoder, ownBody } from './azure/encoder.ts'

const { namespace, ...others } = connectionOptions

const options = z
  .strictObject({
    namespace,
    queue: entityName.optional().describe('Name of the queue; or `topic`.'),
    topic: entityName
      .optional()
      .describe('Name of the topic; or `queue`. Neither is needed where the connection string has an EntityPath.'),
    ...others,
    session: z
      .enum(['none', 'event'])
      .default('none')
      .describe('`event`: a session for each event id, for queues and subscriptions that require sessions.'),
  })
  .superRefine((given, context) => {
    for (const { path, message } of connectionProblems(given, { queue: given.queue, topic: given.topic })) {
      context.addIssue({ code: 'custom', path: [...path], message })
    }
  })

type ServiceBusOptions = z.output<typeof options>

export default defineSink({
  type: 'service-bus',
  summary: 'One message per event to a Service Bus queue or topic',
  options,
  formats: ['cloudevents', 'azure-resource-log', 'ecs'],
  ownBody,
  open: openServiceBus,
})

async function openServiceBus(given: ServiceBusOptions, context: SinkContext): Promise<Sink> {
  const encode = amqpEncoder(given, context.format)
  const { ServiceBusClient } = await import('@azure/service-bus')
  return await openAzureSink(given, context, {
    noun: given.topic === undefined ? 'queue' : 'topic',
    names: { queue: given.queue, topic: given.topic },
    client(access, entity, clientOptions) {
      const more = { ...clientOptions, userAgentOptions: { userAgentPrefix: context.agent } }
      const client =
        'credential' in access
          ? new ServiceBusClient(access.namespace, access.credential, more)
          : new ServiceBusClient(access.connectionString, more)
      const sender = client.createSender(entity)
      return {
        // An empty batch asks for the largest size that the link allows, and so for the link.
        open: (abortSignal) => sender.createMessageBatch({ abortSignal }),
        send(event, abortSignal) {
          const { body, contentType, properties } = encode(event)
          const lane = given.session === 'event' ? { sessionId: event.partitionkey } : { partitionKey: event.partitionkey }
          return sender.sendMessages(
            {
              body,
              contentType,
              applicationProperties: properties,
              messageId: event.id,
              subject: event.type,
              correlationId: event.partitionkey,
              timeToLive: timeToLive(event, context),
              ...lane,
            },
            { abortSignal },
          )
        },
        close: () => client.close(),
      }
    },
  })
}

/**
 * Milliseconds until the outbox itself would have given the event up, so that it grows no older in the broker than it would have in the outbox.
 * One that is older already was replayed by hand, and gets its full time once more.
 */
function timeToLive(event: CloudEvent, { now, maxAgeSeconds }: SinkContext): number {
  const maxAgeMs = maxAgeSeconds * 1000
  const left = Date.parse(event.time) + maxAgeMs - now()
  return left > 0 ? Math.min(left, maxAgeMs) : maxAgeMs
}
