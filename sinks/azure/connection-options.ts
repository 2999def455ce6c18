import { z } from 'zod'
import { authSchema, type Auth } from './auth.ts'
import { parseConnectionString } from './connection-string.ts'

const hostName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

const namespace = z
  .string()
  .regex(hostName, 'expected the host name of the namespace alone, such as contoso.servicebus.windows.net')
  .optional()
  .describe('Host name of the namespace, such as contoso.servicebus.windows.net. Not needed with a connection string.')

const customEndpoint = z
  .string()
  .refine((text) => endpointOf(text) !== undefined, 'expected sb://host or sb://host:port')
  .optional()
  .describe('`sb://host:port` to connect to instead, such as a private endpoint; the namespace stays in the token and the greeting.')

/** What both sinks have in common, in the order of the documentation. */
export const connectionOptions = {
  namespace,
  auth: authSchema,
  mode: z
    .enum(['structured', 'binary'])
    .default('structured')
    .describe('The whole event as JSON in the body, or its data alone; the attributes are application properties in both.'),
  attributePrefix: z
    .enum(['cloudEvents_', 'cloudEvents:'])
    .default('cloudEvents_')
    .describe(
      'Of the application properties that hold the attributes; filters of Service Bus and JMS cannot spell the colon. For the format cloudevents alone: others have no such properties.',
    ),
  transport: z
    .enum(['amqp', 'websockets'])
    .default('amqp')
    .describe('AMQP on port 5671, or AMQP over WebSockets on port 443, through HTTPS_PROXY where that is set.'),
  customEndpoint,
} as const

export const entityName = z
  .string()
  .regex(/^[^\s/?#@$](?:[^\s?#@$]{0,258}[^\s/?#@$])?$/, 'expected the name of the entity alone, without slashes at its ends or spaces')

/** The options of both sinks as far as connecting goes. */
export interface ConnectionOptions {
  readonly namespace?: string | undefined
  readonly auth: Auth
  readonly transport: 'amqp' | 'websockets'
  readonly customEndpoint?: string | undefined
}

export interface Problem {
  readonly path: readonly string[]
  readonly message: string
}

/** The options that can name the entity, and what they say: `{ queue: undefined, topic: 'maintenance' }`. */
export type EntityNames = Readonly<Record<string, string | undefined>>

/**
 * What is wrong across options. A connection string from a file is not read here: what is wrong with it shows when the sink connects.
 */
export function connectionProblems({ auth, namespace, customEndpoint }: ConnectionOptions, names: EntityNames): Problem[] {
  const given = Object.keys(names).filter((option) => names[option] !== undefined)
  const [option = '', second] = given.length > 0 ? given : Object.keys(names)
  if (given.length > 1 && second !== undefined)
    return [{ path: [second], message: `expected one of ${given.join(' and ')}, got both: remove one` }]
  const entity = names[option]
  const wanted = Object.keys(names).join(' or ')
  if (auth.type !== 'connection-string') {
    const problems: Problem[] = []
    if (namespace === undefined) {
      problems.push({ path: ['namespace'], message: `missing: auth.type ${auth.type} needs it, such as contoso.servicebus.windows.net` })
    } else if (!namespace.includes('.') && namespace !== 'localhost' && customEndpoint === undefined) {
      problems.push({ path: ['namespace'], message: `expected the full host name: ${namespace}.servicebus.windows.net?` })
    }
    if (entity === undefined) problems.push({ path: [option], message: `missing: name the ${wanted}` })
    return problems
  }
  const parsed = typeof auth.connectionString === 'string' ? parseConnectionString(auth.connectionString) : undefined
  if (parsed === undefined) return []
  const problems: Problem[] = []
  if (namespace !== undefined && namespace.toLowerCase() !== parsed.host.toLowerCase()) {
    problems.push({ path: ['namespace'], message: 'is not the host in the Endpoint of the connection string: remove one of the two' })
  }
  if (entity === undefined && parsed.entityPath === undefined) {
    problems.push({ path: [option], message: `missing: name the ${wanted}, or take a connection string with EntityPath` })
  }
  if (entity !== undefined && parsed.entityPath !== undefined && entity !== parsed.entityPath) {
    problems.push({ path: [option], message: 'is not the EntityPath of the connection string: remove one of the two' })
  }
  return problems
}

/** Host and port of `sb://host:port`; undefined where the text is not that. */
export function endpointOf(text: string): { readonly host: string; readonly port: number | undefined } | undefined {
  const url = URL.parse(text)
  if (
    url === null ||
    url.protocol !== 'sb:' ||
    url.hostname === '' ||
    !/^\/?$/.test(url.pathname) ||
    url.search !== '' ||
    url.username !== ''
  ) {
    return undefined
  }
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? undefined : Number(url.port) }
}
