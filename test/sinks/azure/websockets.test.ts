import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { webSocketFraming } from '../../../sinks/azure/websocket.ts'
import type { Sink, SinkContext, SinkDefinition } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import { arrivedFromJson } from '../../support/arrived.ts'
import { largeEvent, sampleEvent } from '../../support/sample-event.ts'
import { testContext, unhurried } from '../../support/sink-conformance.ts'
import { startTcpServer } from '../../support/tcp-server.ts'
import { arrivedAt, optionsFor, startNamespace, trustedTls } from './namespace.ts'

const cases: { definition: SinkDefinition; entity: 'hub' | 'queue' }[] = [
  { definition: eventHubs, entity: 'hub' },
  { definition: serviceBus, entity: 'queue' },
]

let certificate: Awaited<ReturnType<typeof trustedTls>>
beforeAll(async () => {
  certificate = await trustedTls()
})
afterAll(() => certificate.distrust())

/** A proxy that makes tunnels to one port of this machine for whoever sends the right credentials, and remembers the names that were asked for. */
async function startProxy(port: number, credentials = ''): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = []
  const open = new Set<{ destroy(): void }>()
  const server = createServer()
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    const given = request.headers['proxy-authorization'] ?? ''
    asked.push(request.url ?? '')
    open.add(client)
    client.on('error', () => {})
    if (given !== (credentials === '' ? '' : `Basic ${Buffer.from(credentials).toString('base64')}`)) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      return
    }
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length > 0) upstream.write(head)
      client.pipe(upstream).pipe(client)
    })
    open.add(upstream)
    upstream.on('error', () => client.destroy())
    upstream.on('close', () => client.destroy())
    client.on('close', () => upstream.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
  return { port: address.port, asked }
}

describe.each(cases)('$definition.type over WebSockets', ({ definition, entity }) => {
  let broker: Broker
  beforeEach(async () => {
    broker = await startNamespace({ tls: certificate.tls })
  })
  afterEach(() => broker.close())

  async function open(more: object = {}, context: Partial<SinkContext> = {}): Promise<Sink> {
    const options: Record<string, unknown> = optionsFor(broker, entity, { transport: 'websockets', ...more })
    const sink = await definition.open(definition.options.parse(options), { ...testContext, ...context })
    onTestFinished(() => sink.close())
    return sink
  }
  /** Without the flag that makes it plain TCP: TLS to the host that the certificate names. */
  const overTls = (): object => ({
    auth: { type: 'connection-string', connectionString: broker.connectionString().replace(';UseDevelopmentEmulator=true', '') },
  })

  it.each(['plain', 'tls'])('brings events over, large ones too (%s)', async (kind) => {
    const sink = await open(kind === 'tls' ? overTls() : {})
    const events = [sampleEvent(1), largeEvent(2), sampleEvent(3)]
    for (const event of events) expect(await sink.deliver(event, unhurried())).toEqual({ status: 'delivered' })
    expect(arrivedAt(broker, entity)).toEqual(events.map(arrivedFromJson))
    expect(await sink.check(unhurried())).toMatchObject({ ok: true })
  })

  /** A name that only the proxy knows. */
  const remote = (): object => ({ ...overTls(), customEndpoint: 'sb://other.example' })

  describe('behind a proxy', () => {
    beforeEach(async () => {
      await broker.close()
      broker = await startNamespace({ tls: (await trustedTls('other.example')).tls })
    })

    it('goes through it, with its user and password', async () => {
      const proxy = await startProxy(broker.port, 'user:p@ss')
      const sink = await open(remote(), { env: { HTTPS_PROXY: `http://user:p%40ss@127.0.0.1:${proxy.port}` } })
      expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
      expect(proxy.asked).toEqual(['other.example:443'])
    })

    it('says that it wants credentials', async () => {
      const proxy = await startProxy(broker.port, 'user:secret')
      const sink = await open(remote(), { env: { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` } })
      const outcome = await sink.deliver(sampleEvent(1), unhurried())
      expect(outcome).toMatchObject({ status: 'retry', because: 'refused', detail: expect.stringContaining('407') })
    })

    it('leaves it out for a host that NO_PROXY names', async () => {
      const proxy = await startProxy(broker.port)
      const sink = await open(remote(), { env: { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: '.example' } })
      expect(await sink.deliver(sampleEvent(1), { signal: AbortSignal.timeout(1_000) })).toMatchObject({ status: 'retry' })
      expect(proxy.asked).toEqual([])
    })
  })

  it('comes back by itself after a restart of the broker', async () => {
    const sink = await open()
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    await broker.stop()
    await vi.waitFor(() => expect(broker.connections).toBe(0))
    await broker.start()
    await vi.waitFor(() => expect(broker.links).toBe(3), { timeout: 5_000, interval: 10 })
    expect(await sink.deliver(sampleEvent(2), unhurried())).toEqual({ status: 'delivered' })
  })

  it.each([
    ['that answers 404', 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n', '404'],
    [
      'that answers with a wrong key',
      'HTTP/1.1 101 S\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n',
      'Accept',
    ],
    ['that speaks something else', 'SSH-2.0-OpenSSH\r\n', 'Parse Error'],
  ])('is told of a server %s', async (_, answer, expected) => {
    const server = await startTcpServer((socket) => {
      socket.once('data', () => socket.write(answer))
    })
    onTestFinished(() => server.stop())
    const sink = await open({ customEndpoint: `sb://127.0.0.1:${server.port}` })
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient', detail: expect.stringContaining(expected) })
  })
})

describe('TLS', () => {
  it('is refused where the certificate is for another name', async () => {
    const broker = await startNamespace({ tls: certificate.tls })
    onTestFinished(() => broker.close())
    const connectionString = broker.connectionString().replace(';UseDevelopmentEmulator=true', '').replace('127.0.0.1', '127.0.0.2')
    const options = {
      queue: 'queue',
      auth: { type: 'connection-string', connectionString },
      customEndpoint: `sb://127.0.0.1:${broker.port}`,
    }
    certificate.distrust()
    onTestFinished(async () => {
      certificate = await trustedTls()
    })
    const sink = await serviceBus.open(serviceBus.options.parse(options), testContext)
    onTestFinished(() => sink.close())
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(outcome).toMatchObject({
      status: 'retry',
      because: 'refused',
      code: 'tls',
      detail: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    })
  })
})

const frame = (first: number, payload: Buffer, lengthBytes: Buffer): Buffer => Buffer.concat([Buffer.from([first]), lengthBytes, payload])
const short = (first: number, payload: Buffer): Buffer => frame(first, payload, Buffer.from([payload.length]))
const hello = Buffer.from('hello')
const unmask = (encoded: Buffer | undefined): Buffer => {
  const bytes = encoded ?? Buffer.alloc(0)
  return Buffer.from(bytes.subarray(6).map((byte, at) => byte ^ (bytes[2 + (at & 3)] ?? 0)))
}

describe('the frames of a WebSocket', () => {
  it.each([
    ['whole', [short(0x82, hello)]],
    ['in fragments', [short(0x02, hello.subarray(0, 2)), short(0x80, hello.subarray(2))]],
    ['with a length of two bytes', [frame(0x82, hello, Buffer.from([126, 0, 5]))]],
    ['with a length of eight bytes', [frame(0x82, hello, Buffer.from([127, 0, 0, 0, 0, 0, 0, 0, 5]))]],
    ['with a pong in between', [short(0x02, hello.subarray(0, 2)), short(0x8a, Buffer.alloc(0)), short(0x80, hello.subarray(2))]],
  ])('are read %s, however they are cut by the network', (_, frames) => {
    const bytes = Buffer.concat(frames)
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const framing = webSocketFraming()
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((chunk) => framing.decode(chunk).bytes)
      expect(Buffer.concat(parts)).toEqual(hello)
    }
  })

  it('are masked by the client, of every length', () => {
    for (const length of [0, 1, 125, 126, 65_535, 65_536, 70_000]) {
      const payload = Buffer.alloc(length, 'ab')
      const encoded = webSocketFraming().encode(payload)
      const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
      expect(encoded[0]).toBe(0x82)
      expect((encoded[1] ?? 0) & 0x80).toBe(0x80)
      const mask = encoded.subarray(head, head + 4)
      expect(Buffer.from(encoded.subarray(head + 4).map((byte, at) => byte ^ (mask[at & 3] ?? 0)))).toEqual(payload)
    }
  })

  it('answer a ping with its own payload, and a goodbye with its code', () => {
    const ping = webSocketFraming().decode(short(0x89, hello))
    expect(ping).toMatchObject({ bytes: [], ended: false })
    expect([ping.replies[0]?.[0], unmask(ping.replies[0])]).toEqual([0x8a, hello])
    const bye = webSocketFraming().decode(short(0x88, Buffer.from([0x03, 0xe8, 0x6f, 0x6b])))
    expect(bye.ended).toBe(true)
    expect([bye.replies[0]?.[0], unmask(bye.replies[0])]).toEqual([0x88, Buffer.from([0x03, 0xe8])])
  })

  it.each([
    ['masked by a server', Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])],
    ['longer than any frame of AMQP', Buffer.from([0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0])],
  ])('end the connection where they are %s', (_, bytes) => {
    expect(() => webSocketFraming().decode(bytes)).toThrow(RangeError)
  })
})
