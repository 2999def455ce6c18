import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'

/** How the ingestion endpoint answers: rows are taken unless told otherwise. */
export type Reply =
  | { readonly does: 'take' }
  | { readonly does: 'answer'; readonly status: number; readonly code?: string; readonly headers?: Record<string, string> }
  | { readonly does: 'hang' }
  | { readonly does: 'cut' }

export interface AzureMonitor {
  /** `https://localhost:{port}`: ingestion endpoint and authority in one. */
  readonly origin: string
  /** Rows that were taken, oldest first. */
  readonly rows: readonly Record<string, unknown>[]
  /** Each request for rows, the refused ones too. */
  readonly uploads: readonly {
    readonly path: string
    readonly version: string | null
    readonly authorization: string
    readonly encoding: string
    readonly agent: string
  }[]
  /** Forms that were sent for a token. */
  readonly tokenRequests: readonly URLSearchParams[]
  reply(reply: Reply): void
  /** How the authority answers: with a token, or with this status. */
  refuseTokens(status: number | undefined): void
  /** The next upload that arrives from now on. */
  nextUpload(): Promise<void>
  stop(): Promise<void>
  restart(): Promise<void>
}

const tenant = '11111111-1111-1111-1111-111111111111'

/** Tenant and app that any test may use with `client-secret`. */
export const testAuth = {
  type: 'client-secret',
  tenantId: tenant,
  clientId: '22222222-2222-2222-2222-222222222222',
  clientSecret: 'hunter2',
} as const

/** Entra ID and the logs ingestion API on one free port, over TLS, as far as the real SDKs need them. */
export async function startAzureMonitor(): Promise<AzureMonitor> {
  const rows: Record<string, unknown>[] = []
  const uploads: { path: string; version: string | null; authorization: string; encoding: string; agent: string }[] = []
  const tokenRequests: URLSearchParams[] = []
  const sockets = new Set<Socket>()
  let reply: Reply = { does: 'take' }
  let refusal: number | undefined
  let upcoming = Promise.withResolvers<void>()

  const token = (response: ServerResponse, body: string): void => {
    tokenRequests.push(new URLSearchParams(body))
    if (refusal === undefined) json(response, 200, { token_type: 'Bearer', expires_in: 3600, access_token: 'token-of-the-stand-in' })
    else json(response, refusal, { error: 'invalid_client', error_description: `AADSTS7000215: Invalid client secret provided: hunter2` })
  }

  const upload = (request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
    const { authorization = '', 'content-encoding': encoding = '', 'user-agent': agent = '' } = request.headers
    const { pathname, searchParams } = new URL(request.url ?? '', origin)
    uploads.push({ path: pathname, version: searchParams.get('api-version'), authorization, encoding, agent })
    upcoming.resolve()
    upcoming = Promise.withResolvers()
    const now = reply
    if (now.does === 'cut') request.socket.destroy()
    if (now.does === 'answer')
      json(response, now.status, { error: { code: now.code ?? 'Refused', message: 'refused by the stand-in' } }, now.headers)
    if (now.does !== 'take') return
    rows.push(...z.array(z.record(z.string(), z.unknown())).parse(JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body))))
    response.writeHead(204).end()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    const path = request.url ?? ''
    const authority = `${origin}/${tenant}`
    if (path.includes('openid-configuration')) {
      json(closing(response), 200, {
        issuer: `${authority}/v2.0`,
        authorization_endpoint: `${authority}/authorize`,
        token_endpoint: `${authority}/oauth2/v2.0/token`,
        jwks_uri: `${authority}/keys`,
      })
    } else if (path.split('?')[0]?.endsWith('/oauth2/v2.0/token') === true) token(closing(response), String(body))
    else upload(request, response, body)
  }
  const server = createServer({ key: await fixture('localhost.key.pem'), cert: await fixture('localhost.pem') }, (request, response) => {
    // A request that the client gave up is no request.
    handle(request, response).catch(() => response.destroy())
  })
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
  const origin = `https://localhost:${port}`

  return {
    origin,
    rows,
    uploads,
    tokenRequests,
    reply: (next) => (reply = next),
    refuseTokens: (status) => (refusal = status),
    nextUpload: () => upcoming.promise,
    async stop() {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
    async restart() {
      if (!server.listening) await listen(port)
    },
  }
}

/** @azure/identity asks through the agent that the whole process shares, which keeps connections that are no sink's to close. */
function closing(response: ServerResponse): ServerResponse {
  return response.setHeader('connection', 'close')
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function fixture(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')
}
