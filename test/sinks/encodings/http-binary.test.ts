import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { httpBinary, percentEncode } from '../../../sinks/encodings/http-binary.ts'
import webhook from '../../../sinks/webhook.ts'
import { openSink, unhurried } from '../../support/sink-conformance.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { startTcpServer, type TcpServer } from '../../support/tcp-server.ts'

const anyText = fc.string({ unit: 'binary' })

describe('percent-encoding of a header value', () => {
  it.each([
    // The example of the specification, section 3.1.3.2.
    ['Euro € 😀', 'Euro%20%E2%82%AC%20%F0%9F%98%80'],
    ['a"b', 'a%22b'],
    ['100%', '100%25'],
    ['%41', '%2541'],
    ['!~', '!~'],
    ['\u007f\u0080', '%7F%C2%80'],
    ['x\r\nset-cookie: a=b', 'x%0D%0Aset-cookie:%20a=b'],
    ['tab\tnull\0', 'tab%09null%00'],
  ])('writes %j as %s', (value, encoded) => {
    expect(percentEncode(value)).toBe(encoded)
  })

  it('writes a lone surrogate as U+FFFD', () => {
    expect(percentEncode('a\ud83db\ude00')).toBe('a%EF%BF%BDb%EF%BF%BD')
  })

  it('gives printable ASCII without quotes for any text, and the same text back', () => {
    fc.assert(
      fc.property(anyText, (value) => {
        const encoded = percentEncode(value)
        expect(encoded).toMatch(/^[\x21\x23-\x7e]*$/)
        expect(decodeURIComponent(encoded)).toBe(value.toWellFormed())
      }),
    )
  })
})

describe('an event in binary mode', () => {
  it('has a header for each attribute but datacontenttype, which is the Content-Type, and the data as its body', () => {
    const event = sampleEvent(1)
    const { headers, body } = httpBinary(event)
    const names = Object.keys(event).filter((name) => name !== 'data' && name !== 'datacontenttype')
    expect(new Set(Object.keys(headers))).toEqual(new Set(['content-type', ...names.map((name) => `ce-${name}`)]))
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'ce-severitynumber': '13', 'ce-extbool': 'false' })
    expect(JSON.parse(body)).toEqual(event.data)
  })

  it.each(['a-b', 'Upper', 'x\r\nset-cookie', ''])('is refused where %j would become the name of a header', (name) => {
    expect(() => httpBinary(sampleEvent(1, { [name]: 'x' }))).toThrow('expected an attribute name')
  })
})

describe('the bytes on the wire', () => {
  let server: TcpServer
  let received = ''

  beforeEach(async () => {
    server = await startTcpServer((socket) => {
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        received += chunk
        if (received.endsWith('}')) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
      })
    })
  })
  afterEach(() => server.stop())

  it('are one header a line, whatever stands in the attributes', async () => {
    const sink = await openSink(webhook, { url: `http://127.0.0.1:${server.port}/hook?a=1`, mode: 'binary', headers: { 'X-Team': 'ops' } })
    const event = sampleEvent(1, { exttext: 'Euro € 😀 a"b 100%\r\nx-evil: 1', data: { a: 1 } })
    expect(await sink.deliver(event, unhurried())).toEqual({ status: 'delivered' })
    await sink.close()

    const [head = '', body] = received.split('\r\n\r\n')
    const lines = head.split('\r\n')
    expect(lines[0]).toBe('POST /hook?a=1 HTTP/1.1')
    expect(lines).toContain('ce-exttext: Euro%20%E2%82%AC%20%F0%9F%98%80%20a%22b%20100%25%0D%0Ax-evil:%201')
    expect(lines).toContain('x-team: ops')
    expect(lines).toContain('user-agent: foreshock/test')
    expect(lines).toContain('content-length: 7')
    expect(lines.filter((line) => /^(?:x-evil|ce-datacontenttype)/i.test(line))).toEqual([])
    expect(body).toBe('{"a":1}')
  })
})
