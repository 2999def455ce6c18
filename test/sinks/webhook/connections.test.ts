import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sink, SinkContext } from '../../../sinks/contract.ts'
import webhook from '../../../sinks/webhook.ts'
import { startHttpReceiver, type HttpReceiver } from '../../support/http-receiver.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { testContext, unhurried } from '../../support/sink-conformance.ts'

const tlsFolder = join(import.meta.dirname, '../../fixtures/tls')
const fixture = (name: string): Promise<string> => readFile(join(tlsFolder, name), 'utf8')
const trusted = { ca: join(tlsFolder, 'ca.pem') }

const open = (options: object, env: SinkContext['env'] = {}): Promise<Sink> =>
  webhook.open(webhook.options.parse(options), { ...testContext, env })
const deliver = (sink: Sink, number = 1): ReturnType<Sink['deliver']> => sink.deliver(sampleEvent(number), unhurried())

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
  return (address satisfies AddressInfo).port
}

describe('a receiver that speaks HTTP/2', () => {
  let server: Http2SecureServer
  let port: number
  let requests: { readonly version: string; readonly path: string; readonly body: string; readonly headers: IncomingMessage['headers'] }[]
  let sessions: number
  let status: number
  let held: boolean
  let arrived: PromiseWithResolvers<void>
  let sink: Sink

  beforeEach(async () => {
    requests = []
    sessions = 0
    status = 204
    held = false
    arrived = Promise.withResolvers()
    const [key, cert] = await Promise.all([fixture('localhost.key.pem'), fixture('localhost.pem')])
    server = createSecureServer({ key, cert, allowHTTP1: true })
    server.on('session', (session) => {
      sessions += 1
      session.on('error', () => {})
    })
    server.on('request', (request, response) => {
      text(request).then(
        (body) => {
          requests.push({ version: request.httpVersion, path: request.url, body, headers: request.headers })
          arrived.resolve()
          if (!held) response.writeHead(status, { 'retry-after': '7' }).end()
        },
        () => {},
      )
    })
    port = await listen(server)
    sink = await open({ url: `https://localhost:${port}/hook?a=1`, tls: trusted })
  })
  afterEach(async () => {
    await sink.close()
    await new Promise((resolve) => server.close(resolve))
  })

  it('gets events by it, over one session', async () => {
    for (let number = 0; number < 5; number += 1) expect(await deliver(sink, number)).toEqual({ status: 'delivered' })
    expect(requests.map(({ version, path }) => [version, path])).toEqual(Array.from({ length: 5 }, () => ['2.0', '/hook?a=1']))
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ ...sampleEvent(0) })
    expect(requests[0]?.headers).toMatchObject({
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'user-agent': 'foreshock/test',
    })
    expect(sessions).toBe(1)
  })

  it('gets many at once', async () => {
    const outcomes = await Promise.all(Array.from({ length: 32 }, (_, number) => deliver(sink, number)))
    expect(outcomes).toEqual(outcomes.map(() => ({ status: 'delivered' })))
    expect(new Set(requests.map(({ body }) => body)).size).toBe(32)
  })

  it('is understood like any other', async () => {
    status = 429
    expect(await deliver(sink)).toMatchObject({ status: 'retry', because: 'throttled', retryAfterMs: 7_000 })
    status = 410
    expect(await deliver(sink)).toMatchObject({ because: 'stopped' })
  })

  it('that never answers is let go, and heard again', async () => {
    held = true
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    await arrived.promise
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ because: 'transient', code: 'timeout' })
    held = false
    expect(await deliver(sink)).toEqual({ status: 'delivered' })
  })

  it('is checked by its handshake alone', async () => {
    expect(await sink.check(unhurried())).toMatchObject({ ok: true })
    expect(requests).toEqual([])
  })
})

describe('a receiver on IPv6', () => {
  it('gets events by its address', async () => {
    const bodies: string[] = []
    const server = createServer((request, response) => {
      text(request).then(
        (body) => {
          bodies.push(`${request.headers.host} ${body.length}`)
          response.writeHead(204).end()
        },
        () => {},
      )
    })
    const port = await listen(server, '::1')
    const sink = await open({ url: `http://[::1]:${port}/` })
    expect(await deliver(sink)).toEqual({ status: 'delivered' })
    expect(await sink.check(unhurried())).toMatchObject({ ok: true })
    expect(bodies).toEqual([expect.stringContaining(`[::1]:${port} `)])
    await sink.close()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('a proxy of the environment', () => {
  let receiver: HttpReceiver
  let proxy: Server
  let proxyUrl: string
  let seen: { readonly method: string; readonly target: string; readonly authorization: string | undefined }[]
  let refusal: number | undefined
  let sink: Sink | undefined
  const sockets = new Set<Socket>()

  beforeEach(async () => {
    seen = []
    refusal = undefined
    sink = undefined
    // Whatever it is asked for, it goes to the receiver: names need not resolve here.
    const server = createServer((request, response) => {
      seen.push({ method: request.method ?? '', target: request.url ?? '', authorization: request.headers['proxy-authorization'] })
      request.resume()
      response.writeHead(refusal ?? 204).end()
    })
    server.on('connect', (request: IncomingMessage, client: Socket) => {
      seen.push({ method: 'CONNECT', target: request.url ?? '', authorization: request.headers['proxy-authorization'] })
      if (refusal !== undefined) {
        client.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\n\r\n`)
        return
      }
      const upstream = connect(receiver.port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        upstream.pipe(client).pipe(upstream)
      })
      for (const socket of [client, upstream]) {
        sockets.add(socket)
        socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket))
      }
    })
    proxy = server
    proxyUrl = `http://127.0.0.1:${await listen(server)}`
    receiver = await startHttpReceiver({ key: await fixture('other.example.key.pem'), cert: await fixture('other.example.pem') })
  })
  afterEach(async () => {
    await sink?.close()
    for (const socket of sockets) socket.destroy()
    await receiver.stop()
    await new Promise((resolve) => proxy.close(resolve))
  })

  it('is asked for a tunnel, and sees nothing of the event', async () => {
    sink = await open({ url: 'https://other.example:8443/hook', tls: trusted }, { HTTPS_PROXY: proxyUrl.replace('//', '//user:p%40ss@') })
    for (let number = 0; number < 6; number += 1) expect(await deliver(sink, number)).toEqual({ status: 'delivered' })
    expect(receiver.requests.map(({ path }) => path)).toEqual(Array.from({ length: 6 }, () => '/hook'))
    const tunnel = {
      method: 'CONNECT',
      target: 'other.example:8443',
      authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
    }
    expect(seen).toEqual(seen.map(() => tunnel))
    // A second one, because the body of a response ends a moment before its connection is free.
    expect(seen.length).toBeLessThanOrEqual(2)
  })

  it('is what the check goes through too', async () => {
    sink = await open({ url: 'https://other.example:8443/hook', tls: trusted }, { https_proxy: proxyUrl })
    expect(await sink.check(unhurried())).toMatchObject({ ok: true, detail: expect.stringContaining('verified') })
    expect(seen.map(({ method }) => method)).toEqual(['CONNECT'])
    expect(receiver.requests).toEqual([])
  })

  it('is passed by for what NO_PROXY lists', async () => {
    sink = await open(
      { url: 'https://other.example:8443/hook', tls: trusted },
      { HTTPS_PROXY: proxyUrl, NO_PROXY: 'example.org, other.example' },
    )
    // The name does not resolve here: that it is tried at all shows that nobody else was asked.
    expect(await deliver(sink)).toMatchObject({ status: 'retry', because: 'transient' })
    expect(seen).toEqual([])
  })

  it('gets plain http with the whole URL', async () => {
    sink = await open({ url: 'http://ops.example/hook?a=1', allowHttp: true }, { HTTP_PROXY: proxyUrl })
    expect(await deliver(sink)).toEqual({ status: 'delivered' })
    expect(seen).toEqual([{ method: 'POST', target: 'http://ops.example/hook?a=1', authorization: undefined }])
  })

  it('is passed by for this machine', async () => {
    const plain = await startHttpReceiver()
    sink = await open({ url: `${plain.origin}/` }, { HTTP_PROXY: proxyUrl })
    expect(await deliver(sink)).toEqual({ status: 'delivered' })
    expect(seen).toEqual([])
    expect(plain.requests).toHaveLength(1)
    await plain.stop()
  })

  it.each([
    [407, 'refused', 'sink_unusable'],
    [403, 'refused', 'sink_unusable'],
    [502, 'transient', 'unreachable'],
  ])('that answers %i keeps the events', async (status, because, code) => {
    refusal = status
    sink = await open({ url: 'https://other.example:8443/hook', tls: trusted }, { HTTPS_PROXY: proxyUrl.replace('//', '//user:hunter2@') })
    const texts = [await deliver(sink), await sink.check(unhurried())]
    expect(texts).toMatchObject([{ status: 'retry', because, code, detail: expect.stringContaining(String(status)) }, { ok: false }])
    expect(JSON.stringify(texts)).not.toContain('hunter2')
    refusal = undefined
    expect(await deliver(sink)).toEqual({ status: 'delivered' })
  })

  it('that wants a password for plain http keeps the events: the receiver has not refused them', async () => {
    refusal = 407
    sink = await open({ url: 'http://ops.example/', allowHttp: true }, { HTTP_PROXY: proxyUrl })
    expect(await deliver(sink)).toMatchObject({ status: 'retry', because: 'refused', code: 'sink_unusable' })
  })

  it('that is not there is tried again', async () => {
    await new Promise((resolve) => proxy.close(resolve))
    sink = await open({ url: 'https://other.example:8443/hook', tls: trusted }, { HTTPS_PROXY: proxyUrl })
    expect(await deliver(sink)).toMatchObject({ status: 'retry', because: 'transient', code: 'network' })
  })

  it('that never answers is let go with the sink', async () => {
    proxy.removeAllListeners('connect')
    const asked = Promise.withResolvers<Socket>()
    proxy.on('connect', (_: IncomingMessage, client: Socket) => asked.resolve(client))
    sink = await open({ url: 'https://other.example:8443/hook', tls: trusted }, { HTTPS_PROXY: proxyUrl })
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    const client = await asked.promise
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ because: 'transient', code: 'timeout' })
    const ended = once(client.resume(), 'end')
    await sink.close()
    await ended
    client.destroy()
  })

  it.each(['http://169.254.169.254', 'http://[fe80::1]:3128', 'http://168.63.129.16:80'])('is never %s', async (url) => {
    await expect(open({ url: 'https://ops.example/' }, { HTTPS_PROXY: url })).rejects.toMatchObject({ code: 'sink_unusable' })
  })
})
