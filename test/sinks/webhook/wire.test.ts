import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Webhook } from 'standardwebhooks'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import type { Sink, SinkContext } from '../../../sinks/contract.ts'
import { eventFormat } from '../../../sinks/formats/event-format.ts'
import webhook from '../../../sinks/webhook.ts'
import { startHttpReceiver, type HttpReceiver } from '../../support/http-receiver.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { testContext, unhurried } from '../../support/sink-conformance.ts'
import { startTcpServer, type TcpServer } from '../../support/tcp-server.ts'

const open = (options: object, context: Partial<SinkContext> = {}): Promise<Sink> =>
  webhook.open(webhook.options.parse(options), { ...testContext, ...context })

/** A server that keeps the bytes of the first request, and answers as told: what a library would tidy up is seen as it is. */
describe('the bytes of a request', () => {
  let server: TcpServer
  let bytes: Promise<Buffer>
  let answer: (socket: Socket) => void

  beforeEach(async () => {
    const whole = Promise.withResolvers<Buffer>()
    bytes = whole.promise
    answer = (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n')
    server = await startTcpServer((socket) => {
      let read = Buffer.alloc(0)
      socket.on('data', (chunk: Buffer) => {
        read = Buffer.concat([read, chunk])
        const [head = '', body] = read.toString('latin1').split('\r\n\r\n')
        const length = /^content-length: (\d+)$/im.exec(head)?.[1]
        if (body === undefined || body.length < Number(length ?? 0)) return
        whole.resolve(read)
        answer(socket)
      })
    })
  })
  afterEach(() => server.stop())

  const sent = async (options: object, event: CloudEvent): Promise<{ lines: string[]; body: Buffer }> => {
    const sink = await open({ url: `http://127.0.0.1:${server.port}/hook?a=1&b=%20`, ...options })
    expect(await sink.deliver(event, unhurried())).toEqual({ status: 'delivered' })
    await sink.close()
    const read = await bytes
    const end = read.indexOf('\r\n\r\n')
    return { lines: read.subarray(0, end).toString('latin1').split('\r\n'), body: read.subarray(end + 4) }
  }

  it('in binary mode has attributes percent-encoded, and the data alone as its body', async () => {
    const event = sampleEvent(1, { exteuro: 'Euro € 😀', extquote: 'a"b', extpercent: '100%' })
    const { lines, body } = await sent({ mode: 'binary' }, event)
    expect(lines[0]).toBe('POST /hook?a=1&b=%20 HTTP/1.1')
    expect(lines).toContain('ce-exteuro: Euro%20%E2%82%AC%20%F0%9F%98%80')
    expect(lines).toContain('ce-extquote: a%22b')
    expect(lines).toContain('ce-extpercent: 100%25')
    expect(lines).toContain('ce-severitynumber: 13')
    expect(lines).toContain('ce-extbool: false')
    expect(lines).toContain('content-type: application/json')
    expect(lines.filter((line) => /^ce-(datacontenttype|data):/i.test(line))).toEqual([])
    expect(lines.every((line) => /^[\x20-\x7e]+$/.test(line))).toBe(true)
    expect(body.toString('utf8')).toBe(JSON.stringify(event.data))
  })

  it('in structured mode has the whole event as UTF-8, with its length in bytes', async () => {
    const { lines, body } = await sent({}, sampleEvent(1))
    expect(lines).toContain('content-type: application/cloudevents+json; charset=utf-8')
    expect(lines).toContain(`content-length: ${body.length}`)
    expect(lines.filter((line) => line.startsWith('ce-'))).toEqual([])
    expect(JSON.parse(body.toString('utf8'))).toEqual({ ...sampleEvent(1) })
  })

  it('has no header but those of the event, however hard an attribute tries', async () => {
    const { lines } = await sent({ mode: 'binary' }, sampleEvent(1, { extevil: 'x\r\nx-evil: 1\r\n\r\nPOST /other HTTP/1.1' }))
    expect(lines.filter((line) => /evil/i.test(line))).toEqual(['ce-extevil: x%0D%0Ax-evil:%201%0D%0A%0D%0APOST%20/other%20HTTP/1.1'])
  })

  it('are not sent at all for an attribute whose name is no name', async () => {
    const sink = await open({ url: `http://127.0.0.1:${server.port}/`, mode: 'binary' })
    expect(await sink.deliver(sampleEvent(1, { 'x\r\nx-evil': '1' }), unhurried())).toMatchObject({
      status: 'retry',
      code: 'event_invalid',
    })
    await sink.close()
  })

  it('may be answered byte by byte: it is the time limit that ends it', async () => {
    const slow = Promise.withResolvers<void>()
    answer = (socket) => {
      const timer = setInterval(() => socket.write('H'), 20)
      socket.once('close', () => clearInterval(timer))
      slow.resolve()
    }
    const sink = await open({ url: `http://127.0.0.1:${server.port}/` })
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    await slow.promise
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    const outcome = await delivering
    // What has come so far may be found to be no HTTP before the time is over.
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient', code: expect.stringMatching(/^(timeout|bad_answer)$/) })
    await sink.close()
  })

  it('may be answered by a status line that takes its time', async () => {
    answer = (socket) => {
      const text = 'HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n'.split('')
      const next = (): void => {
        const character = text.shift()
        if (character === undefined) return
        socket.write(character)
        setImmediate(next)
      }
      next()
    }
    const { lines } = await sent({}, sampleEvent(1))
    expect(lines[0]).toContain('POST')
  })
})

describe('a request', () => {
  let receiver: HttpReceiver
  let sink: Sink | undefined

  beforeEach(async () => {
    receiver = await startHttpReceiver()
    sink = undefined
  })
  afterEach(async () => {
    await sink?.close()
    await receiver.stop()
  })

  const deliver = async (options: object, context: Partial<SinkContext> = {}): Promise<object> => {
    sink ??= await open({ url: receiver.origin, ...options }, context)
    return sink.deliver(sampleEvent(1), unhurried())
  }

  it.each(['structured', 'binary'])('in %s mode is signed; a retry has the same id and body, a new time and signature', async (mode) => {
    const secrets = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`)
    let at = Date.now() - 1000
    const context = { now: () => (at += 1000) }
    receiver.behave({ does: 'answer', status: 500 })
    await deliver({ mode, signing: { secrets } }, context)
    receiver.behave({ does: 'answer', status: 204 })
    await deliver({ mode, signing: { secrets } }, context)
    const [first, second] = receiver.requests
    expect(second?.body).toBe(first?.body)
    expect(second?.headers['webhook-id']).toBe(sampleEvent(1).id)
    expect(first?.headers['webhook-id']).toBe(sampleEvent(1).id)
    expect(Number(second?.headers['webhook-timestamp'])).toBeGreaterThan(Number(first?.headers['webhook-timestamp']))
    expect(second?.headers['webhook-signature']).not.toBe(first?.headers['webhook-signature'])
    for (const request of [first, second]) {
      for (const secret of secrets) {
        expect(new Webhook(secret).verify(request?.body ?? '', { ...request?.headers })).toEqual(JSON.parse(request?.body ?? ''))
      }
    }
  })

  it.each(['azure-resource-log', 'ecs', 'splunk-hec'] as const)('has the format %s as its body', async (name) => {
    const format = eventFormat(name, () => null)
    expect(await deliver({}, { format })).toEqual({ status: 'delivered' })
    expect(receiver.requests[0]).toMatchObject({ body: format.write(sampleEvent(1)), headers: { 'content-type': 'application/json' } })
  })

  it('has a template as its body, signed like any other', async () => {
    const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
    const template = { name: 'pagerduty', values: { routingKey: 'R0UTINGKEY' } }
    expect(await deliver({ template, signing: { secrets: [secret] } })).toEqual({ status: 'delivered' })
    const [request] = receiver.requests
    expect(new Webhook(secret).verify(request?.body ?? '', { ...request?.headers })).toMatchObject({ routing_key: 'R0UTINGKEY' })
    expect(request?.headers['content-type']).toBe('application/json')
  })

  it('is on time at one receiver while another never answers', async () => {
    const stuck = await startHttpReceiver()
    stuck.behave({ does: 'hang' })
    const slow = await open({ url: stuck.origin })
    const time = new AbortController()
    const waiting = slow.deliver(sampleEvent(1), time)
    await stuck.nextRequest()
    for (let number = 0; number < 20; number += 1) expect(await deliver({})).toEqual({ status: 'delivered' })
    time.abort()
    expect(await waiting).toMatchObject({ code: 'aborted' })
    await slow.close()
    await stuck.stop()
  })
})

it('a raw server sees the connection end when the sink is closed', async () => {
  const connected = Promise.withResolvers<Socket>()
  const server = await startTcpServer((socket) => {
    socket.resume()
    connected.resolve(socket)
  })
  const sink = await open({ url: `http://127.0.0.1:${server.port}/` })
  const delivering = sink.deliver(sampleEvent(1), unhurried())
  const socket = await connected.promise
  const ended = once(socket, 'close')
  await sink.close()
  await ended
  expect(await delivering).toMatchObject({ status: 'retry', because: 'transient', code: 'closed' })
  await server.stop()
})
