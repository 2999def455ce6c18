import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sink } from '../../../sinks/contract.ts'
import webhook from '../../../sinks/webhook.ts'
import { startAzureMonitor, testAuth } from '../../support/azure-monitor.ts'
import { startHttpReceiver, type HttpReceiver } from '../../support/http-receiver.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { openSink, unhurried } from '../../support/sink-conformance.ts'

const tlsFolder = join(import.meta.dirname, '../../fixtures/tls')
const fixture = (name: string): Promise<string> => readFile(join(tlsFolder, name), 'utf8')
const at = (name: string): string => join(tlsFolder, name)
const scope = 'api://ops/.default'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'foreshock-credentials-'))
})
afterAll(() => rm(folder, { recursive: true }))
afterEach(() => vi.unstubAllEnvs())

const fileWith = async (text: string): Promise<{ file: string }> => {
  const file = join(folder, 'secret')
  await writeFile(file, text)
  return { file }
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
  return address.port
}

describe('the Authorization of a webhook', () => {
  let receiver: HttpReceiver
  let sink: Sink

  beforeEach(async () => {
    receiver = await startHttpReceiver()
  })
  afterEach(async () => {
    await sink.close()
    await receiver.stop()
  })

  const open = async (auth: object): Promise<void> => {
    sink = await openSink(webhook, { url: receiver.origin, auth })
  }
  const deliver = (): ReturnType<Sink['deliver']> => sink.deliver(sampleEvent(1), unhurried())
  const seen = (): (string | undefined)[] => receiver.requests.map(({ headers }) => headers['authorization'])

  it('is a bearer token, read anew for each request where it stands in a file', async () => {
    await open({ type: 'bearer', token: await fileWith('one\n') })
    await deliver()
    await fileWith('two')
    await deliver()
    expect(seen()).toEqual(['Bearer one', 'Bearer two'])
  })

  it('is a user name with a password, in UTF-8', async () => {
    await open({ type: 'basic', username: 'ops', password: 'pässwörd:€' })
    await deliver()
    expect(seen()).toEqual([`Basic ${Buffer.from('ops:pässwörd:€').toString('base64')}`])
  })

  it.each(['hunter2\r\nx-evil: 1', 'hunter2 x', 'hunter2€', ''])('is never %j', async (token) => {
    await open({ type: 'bearer', token: await fileWith(token) })
    const texts = [await deliver(), await sink.check(unhurried())]
    expect(texts).toMatchObject([{ status: 'retry', because: 'refused', code: 'config_invalid' }, { ok: false }])
    expect(JSON.stringify(texts)).not.toContain('hunter2')
    expect(receiver.requests).toEqual([])
  })

  describe('from Entra ID', () => {
    const trusted = getCACertificates('default')
    beforeAll(async () => setDefaultCACertificates([...trusted, await fixture('ca.pem')]))
    afterAll(() => setDefaultCACertificates(trusted))

    it('is a token for the scope, asked for once', async () => {
      const entra = await startAzureMonitor()
      vi.stubEnv('AZURE_AUTHORITY_HOST', entra.origin)
      await open({ type: 'entra-id', scope, credential: testAuth })
      expect([await deliver(), await deliver()]).toEqual([{ status: 'delivered' }, { status: 'delivered' }])
      expect(seen()).toEqual(['Bearer token-of-the-stand-in', 'Bearer token-of-the-stand-in'])
      expect(entra.tokenRequests.map((form) => form.get('scope')?.includes(scope))).toEqual([true])
      await entra.stop()
    })

    it('is asked for as the environment says where the configuration names nobody', async () => {
      const entra = await startAzureMonitor()
      vi.stubEnv('AZURE_AUTHORITY_HOST', entra.origin)
      vi.stubEnv('AZURE_TENANT_ID', testAuth.tenantId)
      vi.stubEnv('AZURE_CLIENT_ID', testAuth.clientId)
      vi.stubEnv('AZURE_CLIENT_SECRET', testAuth.clientSecret)
      await open({ type: 'entra-id', scope })
      expect(await deliver()).toEqual({ status: 'delivered' })
      expect(entra.tokenRequests.map((form) => form.get('client_id'))).toEqual([testAuth.clientId])
      await entra.stop()
    })

    it.each([
      [401, { because: 'refused', code: 'sink_unusable', detail: expect.stringContaining('AADSTS7000215') }],
      [500, { because: 'transient', code: 'unreachable' }],
    ])('keeps the events while there is none (%i), and tells no secret', async (status, outcome) => {
      const entra = await startAzureMonitor()
      entra.refuseTokens(status)
      vi.stubEnv('AZURE_AUTHORITY_HOST', entra.origin)
      await open({ type: 'entra-id', scope, credential: testAuth })
      const texts = [await deliver(), await sink.check(unhurried())]
      expect(texts).toMatchObject([{ status: 'retry', ...outcome }, { ok: false }])
      expect(JSON.stringify(texts)).not.toContain('hunter2')
      expect(receiver.requests).toEqual([])
      await entra.stop()
    })

    it('is a token of the identity of this machine, asked for directly although there is a proxy', async () => {
      const asked: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
      const identity = createServer((request, response) => {
        asked.push({ url: request.url ?? '', headers: request.headers })
        const expires = Math.floor(Date.now() / 1000) + 3600
        response.setHeader('connection', 'close').setHeader('content-type', 'application/json')
        response.end(
          JSON.stringify({ access_token: 'token-of-this-machine', expires_on: expires, resource: 'api://ops', token_type: 'Bearer' }),
        )
      }).listen(0, '127.0.0.1')
      await once(identity, 'listening')
      vi.stubEnv('IDENTITY_ENDPOINT', `http://127.0.0.1:${portOf(identity)}/msi/token`)
      vi.stubEnv('IDENTITY_HEADER', 'header-of-this-machine')
      await open({ type: 'entra-id', scope, credential: { type: 'managed-identity' } })
      expect(await deliver()).toEqual({ status: 'delivered' })
      expect(seen()).toEqual(['Bearer token-of-this-machine'])
      expect(asked[0]?.url).toContain('resource=api%3A%2F%2Fops')
      expect(process.env['NO_PROXY'] ?? process.env['no_proxy']).toContain('169.254.169.254')
      await new Promise((resolve) => identity.close(resolve))
    })
  })
})

describe('certificates of your own', () => {
  let port: number
  let server: ReturnType<typeof createTlsServer>
  let clients: string[]
  let sink: Sink | undefined

  beforeEach(async () => {
    clients = []
    sink = undefined
    const [key, cert, ca] = await Promise.all([fixture('localhost.key.pem'), fixture('localhost.pem'), fixture('client.pem')])
    server = createTlsServer({ key, cert, ca, requestCert: true, rejectUnauthorized: true }, (request, response) => {
      if (request.socket instanceof TLSSocket) clients.push(String(request.socket.getPeerCertificate().subject.CN))
      request.resume().once('end', () => response.writeHead(204).end())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    port = typeof address === 'object' && address !== null ? address.port : 0
  })
  afterEach(async () => {
    await sink?.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const deliver = async (tls: object): Promise<object> => {
    sink = await openSink(webhook, { url: `https://localhost:${port}/`, tls })
    return sink.deliver(sampleEvent(1), unhurried())
  }

  it('trust the receiver and show who sends: as paths, as files, as PEM', async () => {
    const [ca, cert, key] = await Promise.all([fixture('ca.pem'), fixture('client.pem'), fixture('client.key.pem')])
    const forms = [
      { ca: at('ca.pem'), cert: at('client.pem'), key: at('client.key.pem') },
      { ca: { file: at('ca.pem') }, cert: { file: at('client.pem') }, key: { file: at('client.key.pem') } },
      { ca, cert, key },
    ]
    for (const tls of forms) {
      expect(await deliver(tls)).toEqual({ status: 'delivered' })
      await sink?.close()
    }
    expect(clients).toEqual(['foreshock client', 'foreshock client', 'foreshock client'])
  })

  it('are what the check proves too', async () => {
    await deliver({ ca: at('ca.pem'), cert: at('client.pem'), key: at('client.key.pem') })
    expect(await sink?.check(unhurried())).toMatchObject({ ok: true, detail: expect.stringContaining('verified') })
  })

  it('are not enough without the client’s own', async () => {
    expect(await deliver({ ca: at('ca.pem') })).toMatchObject({ status: 'retry' })
    expect(clients).toEqual([])
  })

  it('count instead of those of the machine', async () => {
    expect(await deliver({ ca: at('client.pem') })).toMatchObject({ status: 'retry', because: 'refused', code: 'tls' })
  })

  it.each([
    ['a missing file', { ca: '/nowhere/hunter2.pem' }, /cannot be read/],
    ['a file with something else', { ca: at('README.md') }, /expected PEM/],
    ['a key that does not fit', { cert: at('client.pem'), key: at('localhost.key.pem') }, /OpenSSL refuses/],
    ['a broken PEM', { ca: '-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----' }, /OpenSSL refuses/],
  ])('keep the events where there is %s', async (_, tls, detail) => {
    const outcome = await deliver(tls)
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', detail: expect.stringMatching(detail) })
    expect(JSON.stringify(outcome)).not.toContain('hunter2')
    expect(clients).toEqual([])
  })
})

function problems(options: object): string {
  const parsed = webhook.options.safeParse({ url: 'https://ops.example/', ...options })
  return parsed.success ? '' : JSON.stringify(parsed.error.issues)
}

describe('the options', () => {
  it.each([
    ['credentials twice', { auth: { type: 'bearer', token: 'hunter2' }, headers: { Authorization: 'hunter2' } }, 'got both'],
    ['a template in binary mode', { mode: 'binary', template: { name: 'pagerduty', values: { routingKey: 'hunter2' } } }, 'got both'],
    ['a key without its certificate', { tls: { key: 'hunter2' } }, 'together'],
    ['a user name with a colon', { auth: { type: 'basic', username: 'a:b', password: 'hunter2' } }, 'without a colon'],
    ['a way that there is not', { auth: { type: 'digest', token: 'hunter2' } }, 'auth'],
    ['a connection string', { auth: { type: 'connection-string', connectionString: 'hunter2' } }, 'auth'],
  ])('refuse %s, and repeat no secret', (_, options, message) => {
    expect(problems(options)).toContain(message)
    expect(problems(options)).not.toContain('hunter2')
  })
})
