import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { arrivedFromHttp, type Arrived } from './arrived.ts'

/** What the receiver does with a request once it has read it. */
export type Behaviour =
  | { readonly does: 'answer'; readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** Never answers. */
  | { readonly does: 'hang' }
  /** Answers with a body that never ends, a byte at a time. */
  | { readonly does: 'drip'; readonly status: number }
  /** Cuts the connection. */
  | { readonly does: 'cut' }
  /** Sends these bytes instead of a response, and ends the connection. */
  | { readonly does: 'send'; readonly bytes: string }

interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Local port of the client: the same for two requests on one connection. */
  readonly clientPort: number
  readonly accepted: boolean
}

export interface HttpReceiver {
  /** `http(s)://127.0.0.1:{port}`, the same after a restart. */
  readonly origin: string
  readonly port: number
  /** Everything that came, oldest first. */
  readonly requests: readonly ReceivedRequest[]
  behave(behaviour: Behaviour): void
  /** How it treats requests of one method, whatever `behave` says. */
  behaveTo(method: string, behaviour: Behaviour): void
  /** The next request that arrives from now on. */
  nextRequest(): Promise<ReceivedRequest>
  /** The events of the requests that were answered with success. */
  arrived(): Arrived[]
  connections(): number
  /** Takes no connections any more and cuts those that are open. Idempotent. */
  stop(): Promise<void>
  /** Listens on the same port again. */
  restart(): Promise<void>
}

/** A real HTTP server on a free port of 127.0.0.1; it answers 204 until told otherwise. */
export async function startHttpReceiver(tls?: { readonly key: string; readonly cert: string }): Promise<HttpReceiver> {
  const requests: ReceivedRequest[] = []
  const sockets = new Set<Socket>()
  const drips = new Set<NodeJS.Timeout>()
  let behaviour: Behaviour = { does: 'answer', status: 204 }
  const byMethod = new Map<string, Behaviour>()
  let upcoming = Promise.withResolvers<ReceivedRequest>()

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request)
    const now = byMethod.get(request.method ?? '') ?? behaviour
    const received = describeRequest(request, body, now)
    requests.push(received)
    upcoming.resolve(received)
    upcoming = Promise.withResolvers()
    if (now.does === 'answer') {
      response.writeHead(now.status, now.headers).end(now.body)
    } else if (now.does === 'drip') {
      response.writeHead(now.status, { 'content-type': 'text/plain' })
      drips.add(setInterval(() => response.write('.'), 50))
    } else if (now.does === 'cut') {
      request.socket.destroy()
    } else if (now.does === 'send') {
      request.socket.end(now.bytes)
    }
  }

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    // A request that the client gave up is no request.
    handle(request, response).catch(() => response.destroy())
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  const listen = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
    return address.port
  }
  const port = await listen(0)

  return {
    origin: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    requests,
    behave: (next) => (behaviour = next),
    behaveTo: (method, next) => void byMethod.set(method, next),
    nextRequest: () => upcoming.promise,
    arrived: () => requests.filter((request) => request.accepted).map(({ headers, body }) => arrivedFromHttp(headers, body)),
    connections: () => sockets.size,
    async stop() {
      for (const drip of drips) clearInterval(drip)
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
    async restart() {
      if (!server.listening) await listen(port)
    },
  }
}

function describeRequest(request: IncomingMessage, body: string, behaviour: Behaviour): ReceivedRequest {
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: Object.fromEntries(headers),
    body,
    clientPort: request.socket.remotePort ?? 0,
    accepted: 'status' in behaviour && behaviour.status >= 200 && behaviour.status < 300,
  }
}
