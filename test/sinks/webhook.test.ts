import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sink } from '../../sinks/contract.ts'
import webhook from '../../sinks/webhook.ts'
import { startHttpReceiver, type Behaviour, type HttpReceiver } from '../support/http-receiver.ts'
import { sampleEvent } from '../support/sample-event.ts'
import { describeSinkConformance, openSink, testContext, unhurried } from '../support/sink-conformance.ts'
import { startTcpServer, type TcpServer } from '../support/tcp-server.ts'

const healthy = (receiver: HttpReceiver): void => receiver.behave({ does: 'answer', status: 204 })

for (const mode of ['structured', 'binary'] as const) {
  describeSinkConformance<HttpReceiver>({
    definition: webhook,
    variant: mode,
    start: () => startHttpReceiver(),
    stop: (receiver) => receiver.stop(),
    options: (receiver) => ({ url: `${receiver.origin}/hook`, mode }),
    arrived: (receiver) => receiver.arrived(),
    down: { cause: (receiver) => receiver.stop(), heal: (receiver) => receiver.restart() },
    throttled: { cause: (receiver) => receiver.behave({ does: 'answer', status: 429, headers: { 'retry-after': '2' } }), heal: healthy },
    refused: { cause: (receiver) => receiver.behave({ does: 'answer', status: 404 }), heal: healthy, refusal: 'rejected' },
    hanging: { cause: (receiver) => receiver.behave({ does: 'hang' }), heal: healthy, reached: (receiver) => receiver.nextRequest() },
    checkFails: (receiver) => receiver.stop(),
  })
}

/** Everything that zod says of these options, its inner findings included. */
function messagesOf(options: object): string[] {
  const parsed = webhook.options.safeParse({ url: 'https://ops.example/', ...options })
  return parsed.success ? [] : parsed.error.issues.map((issue) => JSON.stringify(issue))
}

function fixture(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')
}

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length
}

describe('the options of a webhook', () => {
  it('default to structured mode and https', () => {
    expect(webhook.options.parse({ url: 'https://ops.example/' })).toMatchObject({ mode: 'structured', headers: {}, allowHttp: false })
    expect(webhook.defaults).toEqual({ maxAgeSeconds: 86_400 })
  })

  it('allow http to this machine, and elsewhere only when told', () => {
    expect(messagesOf({ url: 'http://localhost:8080/' })).toEqual([])
    expect(messagesOf({ url: 'http://ops.example/' })).not.toEqual([])
    expect(messagesOf({ url: 'http://ops.example/', allowHttp: true })).toEqual([])
  })

  it('never allow the platform, not even with allowHttp', () => {
    expect(messagesOf({ url: 'http://169.254.169.254/metadata', allowHttp: true }).join()).toContain('never a target')
  })

  it('do not repeat a URL, which may hold secrets', () => {
    expect(messagesOf({ url: 'http://user:hunter2@ops.example/hunter2?hunter2' }).join()).not.toContain('hunter2')
  })

  it.each(['Content-Type', 'host', 'Content-Length', 'Transfer-Encoding', 'User-Agent', 'ce-id', 'CE-Source', 'webhook-signature'])(
    'leave the header %s to the sink',
    (name) => {
      expect(messagesOf({ headers: { [name]: 'x' } }).join()).toContain('set by the sink itself')
    },
  )

  it.each(['x y', 'x:y', 'x\r\ny', 'é', ''])('refuse %j as the name of a header', (name) => {
    expect(messagesOf({ headers: { [name]: 'x' } }).join()).toContain('expected the name of an HTTP header')
  })

  it('are checked again when the sink is opened, whoever opens it', async () => {
    const options = { url: 'http://169.254.169.254/', mode: 'structured', headers: {}, validate: false, allowHttp: true } as const
    await expect(webhook.open(options, testContext)).rejects.toMatchObject({ code: 'sink_unusable' })
    await expect(webhook.open({ ...options, url: 'http://ops.example/', allowHttp: false }, testContext)).rejects.toMatchObject({
      code: 'sink_unusable',
    })
  })
})

describe('a webhook', () => {
  let receiver: HttpReceiver
  let sink: Sink

  beforeEach(async () => {
    receiver = await startHttpReceiver()
    sink = await openSink(webhook, { url: `${receiver.origin}/hook?code=s3cret` })
  })
  afterEach(async () => {
    await sink.close()
    await receiver.stop()
  })

  const deliver = (number = 1): ReturnType<Sink['deliver']> => sink.deliver(sampleEvent(number), unhurried())

  it('posts the event with its type and who sends it', async () => {
    await deliver()
    expect(receiver.requests).toHaveLength(1)
    expect(receiver.requests[0]).toMatchObject({
      method: 'POST',
      path: '/hook?code=s3cret',
      headers: { 'content-type': 'application/cloudevents+json; charset=utf-8', 'user-agent': 'foreshock/test' },
    })
  })

  it('keeps its connections for the next event, whatever the body of the response', async () => {
    for (let number = 0; number < 12; number += 1) {
      receiver.behave({ does: 'answer', status: number % 2 === 0 ? 200 : 404, body: 'x'.repeat(number * 1024) })
      await deliver(number)
    }
    expect(receiver.requests).toHaveLength(12)
    // A second one, because the body of a response ends a moment before its connection is free.
    expect(new Set(receiver.requests.map((request) => request.clientPort)).size).toBeLessThanOrEqual(2)
  })

  it('does not read on where the response has a large body', async () => {
    receiver.behave({ does: 'answer', status: 200, body: 'x'.repeat(8 * 1024 * 1024) })
    expect(await deliver()).toEqual({ status: 'delivered' })
    await vi.waitFor(() => expect(receiver.connections()).toBe(0), { timeout: 5_000 })
  })

  it('takes the status for the answer where the body of the response never ends', async () => {
    receiver.behave({ does: 'drip', status: 202 })
    expect(await deliver()).toEqual({ status: 'delivered' })
    await vi.waitFor(() => expect(receiver.connections()).toBe(0), { timeout: 5_000 })
  })

  it.each([301, 302, 303, 307, 308])('does not follow a %i, and loses nothing by it', async (status) => {
    const elsewhere = await startHttpReceiver()
    receiver.behave({ does: 'answer', status, headers: { location: `${elsewhere.origin}/stolen` } })
    const outcome = await deliver()
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: `http_${status}` })
    expect(outcome).toMatchObject({ detail: expect.stringContaining(`127.0.0.1:${elsewhere.port}`) })
    expect(elsewhere.requests).toEqual([])
    await elsewhere.stop()
  })

  it('stops at 410', async () => {
    receiver.behave({ does: 'answer', status: 410 })
    expect(await deliver()).toMatchObject({ status: 'retry', because: 'stopped', code: 'http_410' })
  })

  it('counts a Retry-After date from the clock that it was given', async () => {
    const context = { ...testContext, now: () => Date.UTC(2026, 2, 1, 12, 0, 0) }
    const other = await webhook.open(webhook.options.parse({ url: receiver.origin }), context)
    receiver.behave({ does: 'answer', status: 503, headers: { 'retry-after': 'Sun, 01 Mar 2026 12:01:00 GMT' } })
    expect(await other.deliver(sampleEvent(1), unhurried())).toMatchObject({ because: 'throttled', retryAfterMs: 60_000 })
    await other.close()
  })

  const odd: [string, Behaviour, string][] = [
    ['cuts the connection', { does: 'cut' }, 'network'],
    ['answers what is no HTTP', { does: 'send', bytes: 'SSH-2.0-OpenSSH_9.6\r\n' }, 'bad_answer'],
    ['sends endless headers', { does: 'send', bytes: `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(64 * 1024)}\r\n\r\n` }, 'bad_answer'],
    [
      'switches the protocol',
      { does: 'send', bytes: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n' },
      'network',
    ],
  ]
  it.each(odd)('tries again where the receiver %s', async (_, behaviour, code) => {
    receiver.behave(behaviour)
    expect(await deliver()).toMatchObject({ status: 'retry', because: 'transient', code })
    healthy(receiver)
    expect(await deliver()).toEqual({ status: 'delivered' })
  })

  it('says that it was closed, instead of opening again', async () => {
    await sink.close()
    expect(await deliver()).toMatchObject({ status: 'retry', because: 'transient', code: 'closed' })
    expect(receiver.requests).toEqual([])
  })

  it('never tells the path and query of its URL', async () => {
    const texts: object[] = []
    for (const status of [206, 301, 404, 410, 429, 500]) {
      receiver.behave({ does: 'answer', status, body: 's3cret', headers: { location: '/s3cret' } })
      texts.push(await deliver())
    }
    texts.push(await sink.check(unhurried()))
    await receiver.stop()
    texts.push(await deliver(), await sink.check(unhurried()))
    expect(JSON.stringify(texts)).toContain('ECONNREFUSED')
    expect(JSON.stringify(texts)).not.toContain('s3cret')
  })
})

describe('a header of a webhook', () => {
  let receiver: HttpReceiver
  let folder: string

  beforeEach(async () => {
    receiver = await startHttpReceiver()
    folder = await mkdtemp(join(tmpdir(), 'foreshock-headers-'))
  })
  afterEach(async () => {
    await receiver.stop()
    await rm(folder, { recursive: true })
  })

  it('comes from the configuration or from a file, read anew for each event', async () => {
    const file = join(folder, 'token')
    await writeFile(file, 'Bearer one\n')
    const sink = await openSink(webhook, { url: receiver.origin, headers: { Authorization: { file }, 'X-Team': 'ops' } })
    await sink.deliver(sampleEvent(1), unhurried())
    await writeFile(file, 'Bearer two\n')
    await sink.deliver(sampleEvent(1), unhurried())
    await sink.close()
    expect(receiver.requests.map((request) => request.headers['authorization'])).toEqual(['Bearer one', 'Bearer two'])
    expect(receiver.requests[0]?.headers['x-team']).toBe('ops')
  })

  it.each(['Bearer hunter2\r\nx-evil: 1', 'Bearer hunter2\0', 'Bearer hunter2€'])('is not sent as %j, and not told', async (value) => {
    const sink = await openSink(webhook, { url: receiver.origin, headers: { Authorization: value } })
    const texts = [await sink.deliver(sampleEvent(1), unhurried()), await sink.check(unhurried())]
    await sink.close()
    expect(texts).toMatchObject([{ status: 'retry', because: 'refused', code: 'config_invalid' }, { ok: false }])
    expect(JSON.stringify(texts)).toContain('Authorization')
    expect(JSON.stringify(texts)).not.toContain('hunter2')
    expect(receiver.requests).toEqual([])
  })

  it('that is missing its file keeps the event, and the check says so', async () => {
    const sink = await openSink(webhook, { url: receiver.origin, headers: { Authorization: { file: join(folder, 'missing') } } })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused' })
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, detail: expect.stringContaining('missing') })
    await sink.close()
    expect(receiver.requests).toEqual([])
  })
})

describe('a webhook over TLS', () => {
  const trusted = getCACertificates('default')
  let receiver: HttpReceiver
  let sink: Sink

  const start = async (certificate: string): Promise<void> => {
    receiver = await startHttpReceiver({ key: await fixture(`${certificate}.key.pem`), cert: await fixture(`${certificate}.pem`) })
    sink = await openSink(webhook, { url: `${receiver.origin}/hook?code=s3cret` })
  }
  afterEach(async () => {
    await sink.close()
    await receiver.stop()
  })

  describe('whose issuer this machine trusts', () => {
    beforeAll(async () => setDefaultCACertificates([...trusted, await fixture('ca.pem')]))
    afterAll(() => setDefaultCACertificates(trusted))

    it('delivers, and its check ends with the handshake', async () => {
      await start('localhost')
      expect(await sink.check(unhurried())).toMatchObject({ ok: true, detail: expect.stringContaining('verified') })
      expect(receiver.requests).toEqual([])
      expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    })

    it('is refused where the certificate is for another name', async () => {
      await start('other.example')
      const outcome = await sink.deliver(sampleEvent(1), unhurried())
      expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: 'tls', detail: expect.stringContaining('ALTNAME') })
      expect(await sink.check(unhurried())).toMatchObject({ ok: false, cure: expect.stringContaining('certificate') })
      expect(receiver.requests).toEqual([])
    })
  })

  it('is refused where the issuer is unknown, and nothing is sent', async () => {
    await start('localhost')
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: 'tls' })
    expect(JSON.stringify(outcome)).not.toContain('s3cret')
    expect(receiver.requests).toEqual([])
  })

  it('is refused where the receiver speaks plain HTTP', async () => {
    receiver = await startHttpReceiver()
    sink = await openSink(webhook, { url: `https://127.0.0.1:${receiver.port}/` })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code: 'tls' })
  })
})

describe('a receiver that accepts connections and says nothing', () => {
  let server: TcpServer
  let accepted: PromiseWithResolvers<void>

  beforeEach(async () => {
    accepted = Promise.withResolvers()
    server = await startTcpServer((socket) => {
      socket.resume()
      accepted.resolve()
    })
  })
  afterEach(() => server.stop())

  it('holds neither a delivery, nor a check, nor the end of the sink in the midst of its handshake', async () => {
    const sink = await openSink(webhook, { url: `https://127.0.0.1:${server.port}/` })
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    const checking = sink.check(time)
    await accepted.promise
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    expect(await checking).toMatchObject({ ok: false, detail: expect.stringContaining('time limit') })
    await sink.close()
    await vi.waitFor(() => expect(openSockets()).toBe(0), { timeout: 5_000 })
  })
})
