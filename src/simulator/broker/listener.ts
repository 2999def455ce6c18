import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { ForeshockError } from '../../../sinks/error.ts'
import { answerUpgrade } from './websocket.ts'

export interface ListenerOptions {
  readonly host: string
  /** PEM. With it the port takes TLS as well. */
  readonly tls: { readonly key: string | Buffer; readonly cert: string | Buffer } | null
  readonly onSocket: (socket: Socket, options: { readonly webSocket: boolean }) => void
}

/** The first byte of a TLS record that carries a handshake. */
const tlsHandshake = 0x16
const letterG = 0x47

/**
 * One port for plain AMQP, AMQP over TLS and WebSockets (bare or over TLS): what comes first tells which. Can be closed and opened again on
 * the same port.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #sockets = new Set<Socket>()
  readonly #waiting = new Set<Socket>()
  readonly #http = createHttpServer((_request, response) => {
    response.writeHead(426, { Upgrade: 'websocket', Connection: 'close' }).end('AMQP over WebSockets only\n')
  })
  readonly #tls
  #server: Server | null = null
  #port = 0
  #frozen = false

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#http.on('upgrade', (request, socket, head: Buffer) => {
      const answer = answerUpgrade(request)
      socket.write(answer.head)
      if (!answer.accepted) {
        socket.end()
        return
      }
      if (head.length > 0) socket.unshift(head)
      // The stream of an upgrade is the very socket that was handed in.
      options.onSocket(asSocket(socket), { webSocket: true })
    })
    this.#http.on('clientError', (_error, socket) => {
      socket.destroy()
    })
    this.#tls = options.tls === null ? null : createTlsServer({ key: options.tls.key, cert: options.tls.cert })
    this.#tls?.on('secureConnection', (socket: TLSSocket) => {
      this.#track(socket)
      this.#route(socket, { secured: true })
    })
    this.#tls?.on('tlsClientError', (_error, socket) => {
      socket.destroy()
    })
  }

  get port(): number {
    return this.#port
  }

  /** Throws `unreachable` when the port is taken. */
  async open(port: number): Promise<void> {
    if (this.#server !== null) return
    const { host } = this.#options
    const server = createServer((socket) => {
      this.#track(socket)
      if (this.#frozen) this.#waiting.add(socket)
      else this.#route(socket, { secured: false })
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const why = cause.code === 'EADDRINUSE' ? 'it is in use: choose another, or 0 for a free one' : cause.message
        reject(new ForeshockError('unreachable', `the broker cannot listen on ${host}:${port}: ${why}`, { cause }))
      })
      server.listen({ port, host, backlog: 511 }, resolve)
    })
    this.#server = server
    const address = server.address()
    if (isAddressInfo(address)) this.#port = address.port
  }

  /** Stops listening; open sockets live on. */
  async close(): Promise<void> {
    const server = this.#server
    this.#server = null
    // `close` calls back only when every socket is gone, which is not what this waits for; that the port is free is true at once.
    server?.close()
    await Promise.resolve()
  }

  /** Destroys every socket, also those that have not said yet what they speak. */
  destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** While frozen, new connections are left waiting as if nobody had called accept. */
  freeze(frozen: boolean): void {
    this.#frozen = frozen
    if (frozen) return
    for (const socket of this.#waiting) this.#route(socket, { secured: false })
    this.#waiting.clear()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#waiting.delete(socket)
    })
  }

  #route(socket: Socket, { secured }: { secured: boolean }): void {
    socket.once('data', (first: Buffer) => {
      socket.pause()
      socket.unshift(first)
      if (first[0] === tlsHandshake && this.#tls !== null && !secured) {
        this.#tls.emit('connection', socket)
        return
      }
      if (first[0] === letterG) this.#http.emit('connection', socket)
      else this.#options.onSocket(socket, { webSocket: false })
      socket.resume()
    })
  }
}

function isAddressInfo(address: string | AddressInfo | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

function asSocket(stream: unknown): Socket {
  if (isSocket(stream)) return stream
  throw new TypeError('an upgraded stream must be a socket')
}

function isSocket(stream: unknown): stream is Socket {
  return typeof stream === 'object' && stream !== null && 'setNoDelay' in stream && 'resetAndDestroy' in stream
}
