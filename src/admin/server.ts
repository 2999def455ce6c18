import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SinkLog } from '../../sinks/contract.ts'
import { ForeshockError } from '../../sinks/error.ts'

/** Whether something is well, and if not, why; the reasons are for people. */
export interface Readiness {
  readonly ready: boolean
  readonly reasons: readonly string[]
}

export interface AdminParts {
  metrics(): Promise<string>
  readiness(): Readiness
  /** JSON-ready, without secrets. */
  status(): unknown
}

/**
 * The admin endpoint: GET /metrics (Prometheus text), /healthz (200 while the process turns), /readyz (200 or 503 with reasons) and /status (JSON).
 * Plain HTTP without authentication, so it belongs on loopback. `listen` is `host:port`; port 0 picks a free one.
 * Throws `unreachable` where the address cannot be had.
 */
export async function startAdmin(listen: string, parts: AdminParts, log: SinkLog): Promise<{ url: string; close(): Promise<void> }> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(listen) ?? []
  const server = createServer((request, response) => void answer(request, response, parts))
  server.headersTimeout = 5_000
  server.requestTimeout = 10_000
  server.maxConnections = 64
  await new Promise<void>((resolve, reject) => {
    // Armed for good: an error of the listening socket later on (EMFILE) ends nothing.
    server.on('error', (cause) => {
      if (server.listening) log.warn({ reason: cause.message }, 'the admin endpoint met an error')
      const message = `the admin endpoint cannot listen on ${listen}: ${cause.message}; set admin.listen to a free address, or to port 0`
      reject(new ForeshockError('unreachable', message, { cause }))
    })
    server.listen(Number(port), host.replace(/^\[(.*)\]$/, '$1'), resolve)
  })
  const address = server.address()
  return {
    url: `http://${host}:${isAddressInfo(address) ? address.port : port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, parts: AdminParts): Promise<void> {
  const send = (status: number, type: string, body: string): void => {
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    response.end(request.method === 'HEAD' ? undefined : body)
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return send(405, 'text/plain', 'only GET and HEAD are answered here\n')
  }
  try {
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        return send(200, 'text/plain', 'ok\n')
      case '/readyz': {
        const { ready, reasons } = parts.readiness()
        return send(ready ? 200 : 503, 'application/json', `${JSON.stringify({ ready, reasons })}\n`)
      }
      case '/status':
        return send(200, 'application/json', `${JSON.stringify(parts.status(), null, 2)}\n`)
      case '/metrics':
        return send(200, 'text/plain; version=0.0.4; charset=utf-8', await parts.metrics())
      default:
        return send(404, 'text/plain', 'expected /metrics, /healthz, /readyz or /status\n')
    }
  } catch (error) {
    send(500, 'text/plain', `the answer could not be made: ${error instanceof Error ? error.message : String(error)}\n`)
  }
}

const isAddressInfo = (address: string | AddressInfo | null): address is AddressInfo => typeof address === 'object' && address !== null
