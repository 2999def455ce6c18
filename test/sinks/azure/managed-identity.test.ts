import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Sink, SinkDefinition } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { openSink, unhurried } from '../../support/sink-conformance.ts'
import { startNamespace, trustedTls } from './namespace.ts'

/** @azure/identity asks here instead of the metadata service, as in App Service. MSAL keeps the first address that it sees: so one port for all. */
const endpoint = createServer()
let port = 0
let answer: (request: IncomingMessage, response: ServerResponse) => void
const asked: string[] = []
let certificate: Awaited<ReturnType<typeof trustedTls>>

endpoint.on('request', (request: IncomingMessage, response: ServerResponse) => {
  asked.push(request.url ?? '')
  answer(request, response)
})
beforeAll(async () => {
  certificate = await trustedTls()
})
afterAll(() => certificate.distrust())

beforeEach(async () => {
  endpoint.listen(port, '127.0.0.1')
  await once(endpoint, 'listening')
  const address = endpoint.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
  ;({ port } = address)
  vi.stubEnv('IDENTITY_ENDPOINT', `http://127.0.0.1:${port}/msi/token`)
  vi.stubEnv('IDENTITY_HEADER', 'secret-of-the-platform')
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await stopEndpoint()
})

async function stopEndpoint(): Promise<void> {
  if (!endpoint.listening) return
  const closed = once(endpoint, 'close')
  endpoint.close()
  endpoint.closeAllConnections()
  await closed
}

/** Tokens that live so many seconds. */
const tokens = (seconds: number) => (_request: IncomingMessage, response: ServerResponse) => {
  response.setHeader('content-type', 'application/json')
  const body = { access_token: `token-${asked.length}`, expires_on: String(Math.floor(Date.now() / 1000) + seconds), token_type: 'Bearer' }
  response.end(JSON.stringify(body))
}

const cases: { definition: SinkDefinition; option: object; entity: string; resource: string; clientId: string }[] = [
  {
    definition: eventHubs,
    option: { eventHub: 'hub' },
    entity: 'hub',
    resource: 'https://eventhubs.azure.net/',
    clientId: '11111111-2222-4333-8444-555555555501',
  },
  {
    definition: serviceBus,
    option: { queue: 'queue' },
    entity: 'queue',
    resource: 'https://servicebus.azure.net/',
    clientId: '11111111-2222-4333-8444-555555555502',
  },
]

describe.each(cases)('$definition.type with a managed identity', ({ definition, option, entity, resource, clientId }) => {
  let broker: Broker
  const judged: string[] = []

  beforeEach(async () => {
    asked.length = 0
    judged.length = 0
    broker = await startNamespace({
      tls: certificate.tls,
      verifyJwt: (token, audience) => {
        judged.push(`${token} ${audience}`)
        return { expiresAt: Date.now() + 3_600_000 }
      },
    })
  })
  afterEach(() => broker.close())

  async function open(auth: object = {}): Promise<Sink> {
    const options = {
      namespace: 'contoso.servicebus.windows.net',
      customEndpoint: `sb://127.0.0.1:${broker.port}`,
      auth: { type: 'managed-identity', ...auth },
      ...option,
    }
    const sink = await openSink(definition, options)
    onTestFinished(() => sink.close())
    return sink
  }

  it('fetches a token for the service, and sends with it', async () => {
    answer = tokens(3_600)
    const sink = await open({ clientId })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    const [url] = asked.map((path) => new URL(path, 'http://localhost'))
    expect([url?.searchParams.get('resource'), url?.searchParams.get('client_id')]).toEqual([resource, clientId])
    expect(judged).toEqual([`token-1 sb://contoso.servicebus.windows.net/${entity}`])
    expect(broker.received(entity)).toHaveLength(1)
  })

  it('renews the token two minutes before its end, while events go on', async () => {
    answer = tokens(122)
    const sink = await open()
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    const [first] = judged
    const connections = broker.connections
    await vi.waitFor(() => expect(judged.length).toBeGreaterThan(1), { timeout: 10_000, interval: 20 })
    expect(judged[1]).not.toBe(first)
    const begun = performance.now()
    expect(await sink.deliver(sampleEvent(2), unhurried())).toEqual({ status: 'delivered' })
    expect(performance.now() - begun).toBeLessThan(1_000)
    expect(broker.connections).toBe(connections)
  })

  it('delays no event by a renewal that hangs', async () => {
    answer = tokens(122)
    const sink = await open()
    await sink.deliver(sampleEvent(1), unhurried())
    const before = asked.length
    answer = () => {}
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(before), { timeout: 10_000, interval: 20 })
    const begun = performance.now()
    expect(await sink.deliver(sampleEvent(2), unhurried())).toEqual({ status: 'delivered' })
    expect(performance.now() - begun).toBeLessThan(1_000)
  })

  it('explains in one line that there is no such identity, with the cure', async () => {
    answer = (_, response) => {
      response.statusCode = 400
      response.setHeader('content-type', 'application/json')
      response.end('{"error":"invalid_request","error_description":"Identity not found"}')
    }
    const sink = await open({ clientId: '11111111-2222-4333-8444-555555555599' })
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: 'no_token' })
    expect(outcome).toMatchObject({ detail: expect.stringMatching(/^no token for \S+ .*az vm identity assign.*$/) })
    const check = await sink.check(unhurried())
    expect(check).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^.*no token.*$/),
      cure: expect.stringContaining('az vm identity assign'),
    })
    expect(JSON.stringify([outcome, check])).not.toContain('secret-of-the-platform')
  })

  it('lets go in time of an endpoint that never answers, and closes at once', async () => {
    answer = () => {}
    const sink = await open({ clientId: '11111111-2222-4333-8444-555555555598' })
    expect(await sink.deliver(sampleEvent(1), { signal: AbortSignal.timeout(200) })).toMatchObject({ status: 'retry', code: 'timeout' })
    const begun = performance.now()
    await sink.close()
    expect(performance.now() - begun).toBeLessThan(1_000)
  })

  it('lets go in time of a send that waits for a token because its link was detached', async () => {
    answer = tokens(1)
    const identity = clientId.replace(/.$/, '5')
    const sink = await open({ clientId: identity })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    answer = () => {}
    broker.faults.detachLinks(entity)
    const begun = performance.now()
    const outcome = await sink.deliver(sampleEvent(2), { signal: AbortSignal.timeout(300) })
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient' })
    expect(performance.now() - begun).toBeLessThan(800)
  })

  it('says so where nobody listens, as on a machine outside Azure', async () => {
    await stopEndpoint()
    const sink = await open()
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient', detail: expect.stringContaining('is this an Azure VM?') })
  })
})
