import type { ServiceBusClient } from '@azure/service-bus'
import { amqpSockets } from '../../sinks/azure/amqp-socket.ts'
import { resolveConnection } from '../../sinks/azure/connection.ts'
import { credentialOf, forLinks } from '../../sinks/azure/credential.ts'
import { dialer } from '../../sinks/azure/dial.ts'
import { lineOf } from '../../sinks/azure/failures.ts'
import { ForeshockError } from '../../sinks/error.ts'
import type { ControlConfig } from '../config/approvals.ts'

/** One operation, such as a settlement. The SDK would try four times, 30 s apart, before it says a word; who calls has a schedule of its own. */
const retryOptions = { maxRetries: 0, timeoutInMs: 10_000, retryDelayInMs: 1000 }
/** Closing waits for answers of the broker, which may never come. */
const closeMs = 3000

/** A client for the namespace of the control queue. */
export interface ServiceBus {
  readonly client: ServiceBusClient
  /** Queue or topic. */
  readonly entity: string
  /** Aborts, with the reason, when a connection breaks: the SDK would notice late or not at all. */
  readonly broken: AbortSignal
  /** Never rejects, and never takes long. Idempotent. */
  close(): Promise<void>
}

/** Opens a client, with the settings as they are now: a secret file that was rotated is read again. It connects at its first use. */
export async function openServiceBus(
  control: ControlConfig,
  { env, agent }: { env: NodeJS.ProcessEnv; agent: string },
): Promise<ServiceBus> {
  const { auth, namespace = '', customEndpoint, queue, topic } = control
  const { target, entity, connectionString } = await resolveConnection(control, { queue, topic })
  const credential = auth.type === 'connection-string' ? undefined : forLinks(await credentialOf(auth))
  const { ServiceBusClient: Client } = await import('@azure/service-bus')
  const broken = new AbortController()
  const sockets = amqpSockets(dialer(target, env), (error) => {
    broken.abort(
      new ForeshockError(
        'unreachable',
        error === undefined ? 'the broker closed the connection' : `the connection broke: ${lineOf(error)}`,
      ),
    )
  })
  const options = {
    retryOptions,
    webSocketOptions: { webSocket: sockets.Socket },
    userAgentOptions: { userAgentPrefix: agent },
    ...(customEndpoint === undefined ? {} : { customEndpointAddress: customEndpoint }),
  }
  const client = credential === undefined ? new Client(connectionString ?? '', options) : new Client(namespace, credential, options)
  return {
    client,
    entity,
    broken: broken.signal,
    async close() {
      await within(closeMs, () => client.close())
      sockets.destroy()
    },
  }
}

/** Waits for a closing, but not for ever. What it throws says nothing that the operations before did not say. */
export async function within(ms: number, close: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const bound = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([
    close().then(
      () => {},
      () => {},
    ),
    bound,
  ])
  clearTimeout(timer)
}
