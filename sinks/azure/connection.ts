import { ForeshockError } from '../error.ts'
import { readSecret } from '../secret.ts'
import { connectionProblems, endpointOf, type ConnectionOptions, type EntityNames } from './connection-options.ts'
import { connectionStringProblem, parseConnectionString } from './connection-string.ts'
import type { Target } from './dial.ts'

/** Where to connect, and which entity. */
interface Connection {
  readonly target: Target
  readonly entity: string
  /** Undefined where a token is used. */
  readonly connectionString: string | undefined
}

const ports = { websockets: 443, tls: 5671, plain: 5672 } as const

/**
 * Resolves the options anew for each connection, so that a secret file that was rotated is read again. Throws `config_invalid` for a file that
 * cannot be read, `sink_unusable` for a connection string that does not fit.
 */
export async function resolveConnection(options: ConnectionOptions, names: EntityNames): Promise<Connection> {
  const entity = Object.values(names).find((name) => name !== undefined)
  const { auth, namespace = '', transport, customEndpoint } = options
  const custom = customEndpoint === undefined ? undefined : endpointOf(customEndpoint)
  if (auth.type !== 'connection-string') {
    return {
      target: targetOf(custom ?? { host: namespace, port: undefined }, true, transport),
      entity: entity ?? '',
      connectionString: undefined,
    }
  }
  const connectionString = (await readSecret(auth.connectionString)).trim()
  const resolved = { ...options, auth: { ...auth, connectionString } }
  const message = connectionStringProblem(connectionString) ?? connectionProblems(resolved, names).map(sentence)[0]
  const parsed = parseConnectionString(connectionString)
  if (message !== undefined || parsed === undefined) throw new ForeshockError('sink_unusable', `connection string: ${message}`)
  return {
    target: targetOf(custom ?? parsed, !parsed.emulator, transport),
    entity: entity ?? parsed.entityPath ?? '',
    connectionString,
  }
}

const sentence = ({ path, message }: { readonly path: readonly string[]; readonly message: string }): string =>
  `${path.join('.')} ${message}`

function targetOf({ host, port }: { host: string; port: number | undefined }, tls: boolean, transport: Target['transport']): Target {
  const usual = transport === 'websockets' ? ports.websockets : tls ? ports.tls : ports.plain
  return { host, port: port ?? usual, tls, transport }
}
