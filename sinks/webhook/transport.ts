import type { LookupFunction, Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { ForeshockError } from '../error.ts'
import { proxyAuthorization, tunnelThrough } from '../proxy.ts'
import type { Answer } from './answer.ts'
import type { TlsMaterial } from './client-tls.ts'
import { hostnameOf } from './target.ts'

interface Request {
  readonly method: 'POST' | 'OPTIONS'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** What of a response decides: the answer itself, and in one to OPTIONS the consent. */
export interface Response extends Answer {
  readonly allowedOrigin: string | undefined
  readonly allowedRate: string | undefined
}

/** How much of a response body is read, and for how long, to keep the connection for the next event. */
const drainBytes = 16 * 1024
const drainMs = 1000

/** Connections to one target, kept for the next event. */
export interface Transport {
  /** Sends once and gives what of the response decides. Throws what undici, node:tls or the proxy throw. */
  send(request: Request, signal: AbortSignal): Promise<Response>
  /** Connects, over https with its handshake, and sends nothing. */
  connectOnce(signal: AbortSignal): Promise<void>
  /** At once. Idempotent. */
  close(): Promise<void>
}

export interface TransportOptions {
  readonly target: URL
  /** Guards every address that is connected to, the proxy's included. */
  readonly lookup: LookupFunction
  readonly proxy: URL | undefined
  /** Read for each connection. */
  readonly tls: () => Promise<TlsMaterial>
}

/**
 * HTTP/1.1 or HTTP/2, as the two sides agree in the TLS handshake. Through a proxy, https goes in a tunnel, so that the proxy sees nothing but
 * the name of the host; http is sent to the proxy with the whole URL, as proxies expect it.
 */
export async function openTransport({ target, lookup, proxy, tls }: TransportOptions): Promise<Transport> {
  const { Agent, buildConnector } = await import('undici')
  const closing = new AbortController()
  const tunnelled = proxy !== undefined && target.protocol === 'https:'
  const forward = proxy !== undefined && !tunnelled ? proxy : undefined
  const credentials = forward === undefined ? undefined : proxyAuthorization(forward)

  const readTls = async (): Promise<TlsMaterial> => (target.protocol === 'https:' ? await tls() : {})
  let current: { readonly material: string; readonly connector: buildConnector.connector } | undefined
  /** The same one while certificates and key are the same, because it keeps the TLS sessions. */
  const lastingConnector = async (): Promise<buildConnector.connector> => {
    const read = await readTls()
    const material = JSON.stringify(read)
    if (current?.material !== material) {
      current = { material, connector: buildConnector({ ...read, lookup, allowH2: true, signal: closing.signal }) }
    }
    return current.connector
  }

  const connect = async (connector: buildConnector.connector, options: buildConnector.Options, signal: AbortSignal): Promise<Socket> => {
    const authority = `${target.hostname}:${target.port === '' ? '443' : target.port}`
    const socket = tunnelled ? await tunnelThrough(proxy, authority, { lookup, signal }) : undefined
    return new Promise((resolve, reject) => {
      connector(socket === undefined ? options : { ...options, httpSocket: socket }, (error, connected) => {
        if (error === null) {
          resolve(connected)
          return
        }
        socket?.destroy()
        reject(error)
      })
    })
  }

  const dial = async (options: buildConnector.Options, callback: buildConnector.Callback): Promise<void> => {
    let socket: Socket
    try {
      socket = await connect(await lastingConnector(), options, closing.signal)
    } catch (error) {
      callback(error instanceof Error ? error : new Error(String(error)), null)
      return
    }
    callback(null, socket)
  }

  const agent = new Agent({
    allowH2: true,
    // One clock only, the signal of each delivery; connecting keeps undici's own limit because it goes on for the next request.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (options, callback) => {
      void dial(options, callback)
    },
  })

  return {
    async send({ method, headers, body }, signal) {
      const response = await agent.request({
        origin: forward?.origin ?? target.origin,
        path: forward === undefined ? target.pathname + target.search : target.origin + target.pathname + target.search,
        method,
        headers: {
          ...headers,
          ...(forward === undefined ? {} : { host: target.host }),
          ...(credentials === undefined ? {} : { 'proxy-authorization': credentials }),
        },
        body,
        signal,
      })
      await drain(response.body, signal)
      if (forward !== undefined && response.statusCode === 407) {
        throw new ForeshockError('sink_unusable', `the proxy ${forward.host} answered 407: set user name and password in its URL`)
      }
      const header = (name: string): string | undefined => first(response.headers[name])
      return {
        status: response.statusCode,
        retryAfter: header('retry-after'),
        location: header('location'),
        allowedOrigin: header('webhook-allowed-origin'),
        allowedRate: header('webhook-allowed-rate'),
      }
    },
    async connectOnce(signal) {
      const { protocol, host, port } = forward ?? target
      const options = { hostname: hostnameOf(forward ?? target), host, protocol, port }
      const both = AbortSignal.any([signal, closing.signal])
      const connector = buildConnector({ ...(await readTls()), lookup, allowH2: true, maxCachedSessions: 0, signal: both })
      const socket = await connect(connector, options, both)
      await new Promise<void>((resolve) => socket.once('close', () => resolve()).destroy())
    },
    async close() {
      closing.abort()
      await agent.destroy()
    },
  }
}

/** Reads off the body within bounds; what is longer or slower costs the connection. The status is known, so nothing here can fail. */
async function drain(body: { dump(options: { limit: number; signal: AbortSignal }): Promise<void> }, signal: AbortSignal): Promise<void> {
  const slow = new AbortController()
  const timer = setTimeout(() => slow.abort(), drainMs)
  const bound = AbortSignal.any([signal, slow.signal])
  try {
    await body.dump({ limit: drainBytes, signal: bound })
  } catch (error) {
    if (!bound.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
