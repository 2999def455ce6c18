import type { TokenCredential } from '@azure/identity'
import type { Sink, SinkContext } from '../contract.ts'
import type { RheaSocketClass } from './amqp-socket.ts'
import type { ConnectionOptions, EntityNames } from './connection-options.ts'
import { resolveConnection } from './connection.ts'
import { credentialOf, forLinks } from './credential.ts'
import { dialer } from './dial.ts'
import type { Client } from './line.ts'
import { sinkOver } from './sender.ts'
import { createWarmLink } from './warm-link.ts'

/** As whom a client of an SDK is made. */
type Access = { readonly connectionString: string } | { readonly namespace: string; readonly credential: TokenCredential }

/** What both SDKs take under the same names. */
interface ClientOptions {
  readonly retryOptions: { readonly maxRetries: number; readonly timeoutInMs: number }
  readonly webSocketOptions: { readonly webSocket: RheaSocketClass }
  readonly customEndpointAddress?: string
}

/** What sets the two sinks apart. */
export interface Kind {
  /** For people: `event hub`, `queue`, `topic`. */
  readonly noun: string
  readonly names: EntityNames
  readonly client: (access: Access, entity: string, options: ClientOptions) => Client
}

/** Retries are the outbox's, and time limits the signal's: the SDK's own is only there so that it is not infinite. */
const retryOptions = { maxRetries: 0, timeoutInMs: 120_000 } as const

/** Opens the link in the background: a broker that is down makes events wait, not the start. */
export async function openAzureSink(options: ConnectionOptions, context: SinkContext, kind: Kind): Promise<Sink> {
  const { auth, namespace = '', customEndpoint } = options
  const credential = auth.type === 'connection-string' ? undefined : forLinks(await credentialOf(auth))
  const link = createWarmLink({
    log: context.log,
    async plan() {
      const { target, entity, connectionString } = await resolveConnection(options, kind.names)
      return {
        dial: dialer(target, context.env),
        async connect(webSocket) {
          const access = credential === undefined ? { connectionString: connectionString ?? '' } : { namespace, credential }
          return kind.client(access, entity, {
            retryOptions: { ...retryOptions },
            webSocketOptions: { webSocket },
            ...(customEndpoint === undefined ? {} : { customEndpointAddress: customEndpoint }),
          })
        },
      }
    },
  })
  const entity = Object.values(kind.names).find((name) => name !== undefined)
  return sinkOver(link, `the ${kind.noun}${entity === undefined ? '' : ` ${entity}`}`)
}
