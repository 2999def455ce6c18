import type { SinkLog } from '../../../sinks/contract.ts'
import { ForeshockError } from '../../../sinks/error.ts'
import { BrokerConnection } from './connection.ts'
import type { BrokerContext, VerifyJwt } from './context.ts'
import { Directory } from './directory.ts'
import { parseEntities, type EntitiesInput } from './entities.ts'
import { Faults } from './faults.ts'
import { Journal, type ReceivedMessage } from './journal.ts'
import { Listener } from './listener.ts'
import { newLockToken } from './lock-token.ts'
import { Peer } from './peer.ts'
import { webSocketPath } from './websocket.ts'

export interface BrokerOptions {
  readonly entities: EntitiesInput
  /** 0, the default, picks a free one. */
  readonly port?: number
  /** Loopback unless said otherwise. */
  readonly host?: string
  /** Milliseconds since the epoch. With a clock that does not run by itself, call `tick()` after moving it. */
  readonly now?: () => number
  /** In [0, 1), for lock tokens. */
  readonly random?: () => number
  readonly log?: SinkLog
  /** PEM. With it the port takes TLS beside plain TCP: `TokenCredential`s and `wss://` need it. */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer }
  /** Refuse links without a valid token, as Azure does. Default true. */
  readonly requireToken?: boolean
  /** Judges the JWTs of `TokenCredential`s. Without it they are refused. */
  readonly verifyJwt?: VerifyJwt
}

/** A failure that the broker survived: what it was doing, and what was thrown. */
interface BrokerError {
  readonly at: number
  readonly what: string
  readonly error: unknown
}

export interface Broker extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** `wss:` with TLS, `ws:` without. */
  readonly websocketUrl: string
  /** For both SDKs: plain TCP to this broker, with the first declared key. */
  connectionString(entityPath?: string): string
  readonly faults: Faults
  /** What an entity accepted, oldest first, decoded and as bytes. */
  received(entity: string): readonly ReceivedMessage[]
  /** Resolves when an entity has accepted `count` messages in all. */
  waitForMessages(entity: string, count: number, options: { readonly signal: AbortSignal }): Promise<readonly ReceivedMessage[]>
  /** Messages that a queue, subscription (`{topic}/Subscriptions/{name}`) or dead-letter sub-queue (`…/$DeadLetterQueue`) holds. */
  count(path: string): number
  /** Open connections and links, `$cbs` and management included. */
  readonly connections: number
  readonly links: number
  /** The last failures that were survived: malformed peers, and faults of the broker itself. */
  readonly errors: readonly BrokerError[]
  /** Applies what the clock made due: for an injected clock. */
  tick(): void
  /** Stops listening and breaks every connection; what the entities hold is kept. */
  stop(): Promise<void>
  /** Listens again, on the same port. */
  start(): Promise<void>
  /** `stop` and `start`. */
  restart(): Promise<void>
  /** Idempotent. */
  close(): Promise<void>
}

const silent: SinkLog = { debug() {}, info() {}, warn() {}, error() {} }
const keptErrors = 100
const loopback = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/i

/**
 * An Event Hubs and Service Bus namespace on this machine, for the unmodified SDKs. Everything is in memory.
 * Throws `config_invalid` for wrong entities, `usage` for a host that is none, `unreachable` when the port is taken.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { host = '127.0.0.1', now = Date.now, random = Math.random, log = silent } = options
  if (host.trim() === '') {
    // Node takes an empty host for every interface of the machine.
    throw new ForeshockError('usage', 'an empty host would open the broker to the network: leave it out for 127.0.0.1, or name an address')
  }
  const entities = parseEntities(options.entities, 'the entities of the broker')
  const connections = new Set<BrokerConnection>()
  const peers = new Set<Peer>()
  const errors: BrokerError[] = []
  let connectionNumber = 0
  let frozen = false

  const listener = new Listener({
    host,
    tls: options.tls ?? null,
    onSocket: (socket, { webSocket }) => {
      const peer = new Peer(socket, {
        webSocket,
        onBroken: (error) => context.remember('a peer broke the protocol', error),
        onClose: () => {
          connection.closed()
          connections.delete(connection)
          peers.delete(peer)
        },
      })
      connectionNumber += 1
      const connection = new BrokerConnection(peer, `c${connectionNumber}`, context)
      connections.add(connection)
      peers.add(peer)
      if (frozen) peer.freeze(true)
    },
  })

  const faults = new Faults(now, {
    dropConnections: () => {
      const dropped = connections.size
      listener.destroySockets()
      return dropped
    },
    detachLinks: (entity, problem) => [...connections].reduce((sum, connection) => sum + connection.detachLinks(entity, problem), 0),
    freeze: (freezing) => {
      frozen = freezing
      listener.freeze(freezing)
      for (const peer of peers) peer.freeze(freezing)
    },
    listen: (listening) => (listening ? listener.open(listener.port) : listener.close()),
  })

  const context: BrokerContext = {
    directory: new Directory(entities, { now, token: () => newLockToken(random) }),
    keys: entities.keys,
    verifyJwt: options.verifyJwt ?? null,
    requireToken: options.requireToken ?? true,
    faults,
    journal: new Journal(),
    now,
    log,
    remember: (what, error) => {
      errors.push({ at: now(), what, error })
      if (errors.length > keptErrors) errors.shift()
      log.warn({ err: error }, `the broker met a failure: ${what}`)
    },
  }

  await listener.open(options.port ?? 0)
  const { port } = listener
  log.info({ host, port }, 'the local broker listens; it keeps everything in memory and forgets it at its end')
  if (!loopback.test(host)) log.warn({ host, port }, 'the local broker can be reached from the network: it is made for tests, not for that')

  async function stop(): Promise<void> {
    await listener.close()
    listener.destroySockets()
  }

  async function close(): Promise<void> {
    await stop()
    context.directory.close()
  }

  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    host,
    port,
    websocketUrl: `${options.tls === undefined ? 'ws' : 'wss'}://${authority}${webSocketPath}`,
    connectionString(entityPath) {
      const key = entities.keys[0] ?? { name: 'local', key: 'local' }
      const parts = [
        `Endpoint=sb://${authority}`,
        `SharedAccessKeyName=${key.name}`,
        `SharedAccessKey=${key.key}`,
        'UseDevelopmentEmulator=true',
      ]
      if (entityPath !== undefined) parts.push(`EntityPath=${entityPath}`)
      return parts.join(';')
    },
    faults,
    received: (entity) => context.journal.received(entity),
    waitForMessages: (entity, count, { signal }) => context.journal.waitFor(entity, count, signal),
    count(path) {
      const dead = /^(.*)\/\$deadletterqueue$/i.exec(path)?.[1]
      const node = context.directory.queue(dead ?? path, dead !== undefined)
      if (node === null) throw new ForeshockError('usage', `there is no queue or subscription ${path}`)
      return node.queue.size
    },
    get connections() {
      return connections.size
    },
    get links() {
      return [...connections].reduce((sum, connection) => sum + connection.links.size, 0)
    },
    get errors() {
      return [...errors]
    },
    tick: () => context.directory.tick(),
    stop,
    start: () => listener.open(port),
    async restart() {
      await stop()
      await listener.open(port)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
