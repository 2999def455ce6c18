import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { EventHubProducerClient } from '@azure/event-hubs'
import { ServiceBusClient } from '@azure/service-bus'
import rhea from 'rhea'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBroker } from '../../../src/simulator/broker/broker.ts'
import { impatient, openNamespace, within } from './namespace.ts'

const entities = { queues: [{ name: 'q' }, { name: 'other' }], eventHubs: [{ name: 'hub' }] }
const fixture = (name: string) => readFile(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')
const tls = { key: await fixture('localhost.key.pem'), cert: await fixture('localhost.pem') }
const authority = await fixture('ca.pem')
const trusted = getCACertificates('default')

// The SDKs open their TLS and WebSocket connections themselves and can be given no authority but the default ones.
beforeAll(() => setDefaultCACertificates([...trusted, authority]))
afterAll(() => setDefaultCACertificates(trusted))

const inAnHour = () => Date.now() + 3_600_000
const credential = { getToken: async () => ({ token: 'header.payload.signature', expiresOnTimestamp: inAnHour() }) }

test('a token credential comes over TLS with a JWT, which the callback judges', async () => {
  const judged: string[] = []
  const verifyJwt = (token: string, audience: string) => {
    judged.push(`${token} ${audience}`)
    return { expiresAt: inAnHour() }
  }
  await using azure = await openNamespace(entities, { tls, verifyJwt })
  const customEndpointAddress = `sb://127.0.0.1:${azure.broker.port}`
  const options = { customEndpointAddress, retryOptions: impatient }
  const client = azure.closing(new ServiceBusClient('contoso.servicebus.windows.net', credential, options))
  await client.createSender('q').sendMessages({ body: 1 })
  const producer = azure.closing(new EventHubProducerClient('contoso.servicebus.windows.net', 'hub', credential, options))
  await producer.sendBatch([{ body: 1 }])
  expect(judged).toEqual([
    'header.payload.signature sb://contoso.servicebus.windows.net/q',
    'header.payload.signature sb://contoso.servicebus.windows.net/hub',
  ])
})

test('a JWT that nobody judges is unauthorized', async () => {
  await using azure = await openNamespace(entities, { tls })
  const options = { customEndpointAddress: `sb://127.0.0.1:${azure.broker.port}`, retryOptions: impatient }
  const client = azure.closing(new ServiceBusClient('contoso.servicebus.windows.net', credential, options))
  await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'UnauthorizedAccess' })
})

test('both SDKs work over WebSockets with TLS, also with messages of many frames', async () => {
  await using azure = await openNamespace({ ...entities, queues: [{ name: 'q', maxMessageBytes: 1_000_000 }] }, { tls })
  expect(azure.broker.websocketUrl).toBe(`wss://127.0.0.1:${azure.broker.port}/$servicebus/websocket`)
  const webSocketOptions = { webSocket: WebSocket }
  const client = azure.serviceBus({ webSocketOptions })
  const body = Buffer.alloc(300_000, 'ab')
  await client.createSender('q').sendMessages({ body })
  const [message] = await client.createReceiver('q').receiveMessages(1)
  expect(body.equals(message?.body)).toBe(true)
  const options = { webSocketOptions, retryOptions: impatient }
  const producer = azure.closing(new EventHubProducerClient(azure.broker.connectionString('hub'), options))
  await producer.sendBatch([{ body: 1 }])
  expect((await producer.getEventHubProperties()).partitionIds).toHaveLength(4)
})

test('plain and encrypted connections share the port', async () => {
  await using azure = await openNamespace(entities, { tls })
  await azure.serviceBus().createSender('q').sendMessages({ body: 1 })
  const socket = connectTls({ host: '127.0.0.1', port: azure.broker.port, servername: 'localhost' })
  await once(socket, 'secureConnect', { signal: within() })
  socket.write(protocolHeader)
  const [answer] = await once(socket, 'data', { signal: within() })
  expect(Buffer.isBuffer(answer) && answer.toString('latin1', 0, 4)).toBe('AMQP')
  socket.destroy()
})

test.each([
  ['GET /somewhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n', /^HTTP.1.1 404/],
  [
    'GET /$servicebus/websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n',
    /^HTTP.1.1 426/,
  ],
  ['GET /$servicebus/websocket HTTP/1.1\r\nHost: x\r\n\r\n', /^HTTP.1.1 426/],
  ['GARBAGE\r\n\r\n', /^$/],
])('an HTTP request that is no upgrade to the right path ends in an answer, or in nothing: %j', async (request, expected) => {
  await using azure = await openNamespace(entities)
  const socket = connect(azure.broker.port, '127.0.0.1')
  socket.write(request)
  expect(await ended(socket)).toMatch(expected)
})

const protocolHeader = Buffer.from([0x41, 0x4d, 0x51, 0x50, 0, 1, 0, 0])
const saslHeader = Buffer.from([0x41, 0x4d, 0x51, 0x50, 3, 1, 0, 0])
/** An open performative with the container id "x". */
const open = Buffer.from('0000000e0200000000531045', 'hex')

test.each([
  ['random text', Buffer.from('hello broker, how are you?\r\n')],
  ['another protocol version', Buffer.from('AMQP\u0000\u0000\u0009\u0001')],
  ['a TLS record without TLS', Buffer.from('160301020001000201fc0303', 'hex')],
  ['a frame of no length', Buffer.concat([protocolHeader, Buffer.alloc(16)])],
  ['a frame that announces four gigabytes', Buffer.concat([protocolHeader, Buffer.from('ffffffff02000000', 'hex')])],
  ['an open without its fields', Buffer.concat([protocolHeader, open])],
  ['an unknown type code', Buffer.concat([protocolHeader, Buffer.from('0000000a0200000000ff', 'hex')])],
  [
    'a transfer on a session that is not there',
    Buffer.concat([protocolHeader, Buffer.from('000000100200000900531445', 'hex'), Buffer.alloc(4)]),
  ],
  [
    'an unknown SASL mechanism',
    Buffer.concat([saslHeader, Buffer.from('0000001d02010000005341d00000000d00000001b30000000458585858', 'hex')]),
  ],
])('%s costs its sender the connection, and nobody else anything', async (_, bytes) => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 1 })
  const socket = connect(azure.broker.port, '127.0.0.1')
  socket.end(bytes)
  await ended(socket)
  await sender.sendMessages({ body: 2 })
  expect(azure.broker.received('q')).toHaveLength(2)
  await expect.poll(() => azure.broker.connections, { timeout: 5_000 }).toBe(1)
})

test('hundreds of damaged copies of a real conversation leave the broker working', async () => {
  await using azure = await openNamespace(entities, { requireToken: false })
  const conversation = await recordConversation(azure.broker.port)
  let seed = 42
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(Array.from({ length: 20 }, () => speak(azure.broker.port, damage(conversation, random))))
  }
  await azure.serviceBus().createSender('other').sendMessages({ body: 'still here' })
  const [message] = await azure.serviceBus().createReceiver('other').receiveMessages(1)
  expect(message?.body).toBe('still here')
  expect(azure.broker.errors.filter((error) => error.what.startsWith('handling'))).toEqual([])
})

test('a message that is no AMQP is rejected, and the link lives on', async () => {
  await using azure = await openNamespace(entities, { requireToken: false })
  const connection = rhea.create_container().connect({ host: '127.0.0.1', port: azure.broker.port, reconnect: false })
  const sender = connection.open_sender('q')
  await once(sender, 'sendable', { signal: within() })
  const outcomes: string[] = []
  for (const bytes of ['00ff', '005375a0', '005375a10161', '41']) {
    sender.send(Buffer.from(bytes, 'hex'), undefined, 0)
    const [context] = await once(sender, 'rejected', { signal: within() })
    outcomes.push(context.delivery.remote_state.error.condition)
  }
  sender.send({ body: 'fine' })
  await once(sender, 'accepted', { signal: within() })
  expect(outcomes).toEqual(Array(4).fill('amqp:decode-error'))
  expect(azure.broker.received('q').at(-1)?.message.body).toBe('fine')
  connection.close()
  await once(connection, 'connection_close', { signal: within() })
})

test('a peer that wants to hear something now and then hears it', async () => {
  await using azure = await openNamespace(entities)
  const connection = rhea.create_container().connect({ host: '127.0.0.1', port: azure.broker.port, reconnect: false, idle_time_out: 100 })
  await once(connection, 'connection_open', { signal: within() })
  // rhea closes a connection on which it heard nothing for twice its time-out.
  await sleep(500)
  expect([connection.is_open(), azure.broker.connections]).toEqual([true, 1])
  connection.close()
  await once(connection, 'connection_close', { signal: within() })
})

test('the broker does not listen beyond this machine unless it is told a host', async () => {
  await expect(startBroker({ entities, host: '' })).rejects.toMatchObject({ name: 'ForeshockError', code: 'usage' })
  await using broker = await startBroker({ entities })
  expect(broker.host).toBe('127.0.0.1')
})

test('a port that is taken is told as such', async () => {
  await using first = await startBroker({ entities })
  await expect(startBroker({ entities, port: first.port })).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('in use'),
  })
})

test('closing twice, and stopping a stopped broker, are nothing special', async () => {
  const broker = await startBroker({ entities })
  await broker.stop()
  await broker.stop()
  await broker.close()
  await expect(broker.close()).resolves.toBeUndefined()
})

test('sixteen senders at once are all acknowledged', async () => {
  await using azure = await openNamespace(entities)
  const sender = azure.serviceBus().createSender('q')
  await sender.sendMessages({ body: 'first' })
  let sent = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (sent < 2_000) {
        sent += 1
        await sender.sendMessages({ body: sent })
      }
    }),
  )
  expect(azure.broker.count('q')).toBe(azure.broker.received('q').length)
  expect(azure.broker.count('q')).toBeGreaterThan(2_000)
})

/** All that came until the other side ended. */
async function ended(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  // A reset is an end as well, so this cannot be `once`, which rejects on errors.
  socket.on('error', () => {})
  if (!socket.closed) {
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
    })
  }
  return text
}

/** Says its part step by step, waiting for answers as long as the layers are negotiated. */
async function speak(port: number, parts: readonly Buffer[]): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const over = ended(socket)
  for (const [at, part] of parts.entries()) {
    if (socket.destroyed) break
    const heard = socket.bytesRead
    socket.write(part)
    for (let turns = 0; turns < (at < 3 ? 50 : 1) && socket.bytesRead === heard && !socket.destroyed; turns += 1) await sleep(1)
  }
  socket.end()
  await over
}

/** The same parts with up to four bytes changed. */
function damage(parts: readonly Buffer[], random: (below: number) => number): Buffer[] {
  const damaged = parts.map((part) => Buffer.from(part))
  for (let changes = random(4) + 1; changes > 0; changes -= 1) {
    const part = damaged[random(damaged.length)]
    if (part !== undefined) part[random(part.length)] = random(256)
  }
  return damaged
}

/** What a client says to send and receive messages, taken from between it and the broker. */
async function recordConversation(port: number): Promise<Buffer[]> {
  const said: Buffer[] = []
  const proxy = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    client.on('data', (chunk: Buffer) => said.push(chunk))
    client.pipe(upstream).pipe(client)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
  })
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve)
  })
  const address = proxy.address()
  const proxyPort = typeof address === 'object' ? (address?.port ?? 0) : 0
  const connection = `Endpoint=sb://127.0.0.1:${proxyPort};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true`
  const client = new ServiceBusClient(connection, { retryOptions: impatient })
  await client.createSender('q').sendMessages([{ body: 'x', applicationProperties: { a: 1 } }, { body: 'y' }])
  const receiver = client.createReceiver('q', { maxAutoLockRenewalDurationInMs: 0 })
  const [message] = await receiver.receiveMessages(1)
  if (message !== undefined) {
    await receiver.renewMessageLock(message)
    await receiver.deadLetterMessage(message, { deadLetterReason: 'r', deadLetterErrorDescription: 'd' })
  }
  await client.close()
  proxy.close()
  return said
}
