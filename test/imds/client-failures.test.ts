import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { FailureReason } from '../../src/imds/failure.ts'
import { addressOf } from './address-of.ts'
import { openClient } from './open-client.ts'
import { rawEndpoint, rawEndpointOn, reply, type RawAnswer } from './raw-endpoint.ts'

const document = '{"DocumentIncarnation":7,"Events":[]}'
const captured = (name: string): Promise<Buffer> => readFile(new URL(`../documents/${name}`, import.meta.url))
const bom = await captured('s01-bom-prefixed.txt')
const html = await captured('e10-html-proxy-502.txt')

/** Writes a piece, again and again, until the other side hangs up. */
const drip =
  (head: string, piece: string, everyMs: number): RawAnswer =>
  (socket) => {
    socket.write(head)
    const timer = setInterval(() => socket.write(piece), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const kilobyte = `400\r\n${'x'.repeat(1024)}\r\n`

const faults: readonly {
  readonly what: string
  readonly answer: RawAnswer
  readonly reason: FailureReason
  readonly status?: number
  readonly detail: RegExp
  readonly retryAfterMs?: number
}[] = [
  { what: 'a 200 without a byte', answer: reply(200), reason: 'empty_body', status: 200, detail: /got an empty body/ },
  { what: 'a blank 200', answer: reply(200, ' \r\n'), reason: 'empty_body', status: 200, detail: /got a blank body/ },
  { what: 'JSON that ends in the middle', answer: reply(200, document.slice(0, 20)), reason: 'truncated', status: 200, detail: /20 bytes/ },
  {
    what: 'a connection that ends in the middle of the body',
    answer: (socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n${document}`),
    reason: 'truncated',
    status: 200,
    detail: /37 bytes/,
  },
  {
    what: 'a chunked body without its end',
    answer: (socket) => socket.end(`${chunked}${document.length.toString(16)}\r\n${document}\r\n`),
    reason: 'truncated',
    status: 200,
    detail: /whole body/,
  },
  {
    what: 'a reset in the middle of the body',
    answer: (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n${document}`, () => setTimeout(() => socket.resetAndDestroy(), 20))
    },
    reason: 'truncated',
    status: 200,
    detail: /connection was lost/,
  },
  {
    what: 'a content-length that cuts the document short',
    answer: (socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close\r\n\r\n${document}`),
    reason: 'truncated',
    status: 200,
    detail: /12 bytes/,
  },
  { what: 'a byte order mark', answer: reply(200, bom), reason: 'not_json', status: 200, detail: /byte order mark/ },
  { what: 'HTML', answer: reply(200, html, { 'content-type': 'text/html' }), reason: 'not_json', status: 200, detail: /<html>/ },
  {
    what: 'bytes that are not UTF-8',
    answer: reply(200, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])),
    reason: 'not_json',
    status: 200,
    detail: /not UTF-8/,
  },
  { what: 'an array', answer: reply(200, '[]'), reason: 'not_a_document', status: 200, detail: /expected an object/ },
  { what: 'an object without Events', answer: reply(200, '{}'), reason: 'not_a_document', status: 200, detail: /Events/ },
  {
    what: 'a 302',
    answer: reply(302, '', { location: 'http://127.0.0.1:1/' }),
    reason: 'redirect',
    status: 302,
    detail: /127\.0\.0\.1:1.*not followed/,
  },
  { what: 'a 304 before any document', answer: reply(304), reason: 'http_status', status: 304, detail: /got 304/ },
  { what: 'a 400 with a valid document', answer: reply(400, document), reason: 'http_status', status: 400, detail: /imds\.apiVersion/ },
  { what: 'a 201 with a valid document', answer: reply(201, document), reason: 'http_status', status: 201, detail: /got 201/ },
  { what: 'a 404', answer: reply(404), reason: 'http_status', status: 404, detail: /got 404/ },
  { what: 'a 405', answer: reply(405), reason: 'http_status', status: 405, detail: /got 405/ },
  { what: 'a 410', answer: reply(410), reason: 'http_status', status: 410, detail: /got 410/ },
  {
    what: 'a 429 without Retry-After',
    answer: reply(429, '{"error":"Too many requests"}'),
    reason: 'http_status',
    status: 429,
    detail: /Too many/,
  },
  {
    what: 'a 429 with Retry-After in seconds',
    answer: reply(429, '', { 'retry-after': '7' }),
    reason: 'http_status',
    status: 429,
    detail: /got 429/,
    retryAfterMs: 7_000,
  },
  {
    what: 'a 503 with Retry-After as a date',
    answer: reply(503, '', { 'retry-after': 'Mon, 11 Apr 2022 22:27:08 GMT' }),
    reason: 'http_status',
    status: 503,
    detail: /got 503/,
    retryAfterMs: 10_000,
  },
  { what: 'a 500', answer: reply(500, 'pod list is empty\r\n'), reason: 'http_status', status: 500, detail: /"pod list is empty"/ },
  { what: 'a 504', answer: reply(504), reason: 'http_status', status: 504, detail: /got 504/ },
  {
    what: 'a 500 that never ends',
    answer: drip(chunked.replace('200', '500'), kilobyte, 1),
    reason: 'http_status',
    status: 500,
    detail: /got 500/,
  },
  { what: '10 MB', answer: reply(200, Buffer.alloc(10_000_000, 0x20)), reason: 'too_large', status: 200, detail: /1048576 bytes/ },
  {
    what: 'a body that never ends',
    answer: drip(chunked, `10000\r\n${'x'.repeat(0x10000)}\r\n`, 1),
    reason: 'too_large',
    status: 200,
    detail: /1048576 bytes/,
  },
  {
    what: 'a body byte by byte',
    answer: drip('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{', ' ', 10),
    reason: 'timeout',
    status: 200,
    detail: /within 300 ms, got \d+ bytes/,
  },
  { what: 'silence', answer: () => {}, reason: 'timeout', detail: /within 500 ms, got nothing/ },
  {
    what: 'headers byte by byte',
    answer: drip('HTTP/1.1 200 OK\r\nx: ', 'x', 10),
    reason: 'timeout',
    detail: /within 500 ms, got nothing/,
  },
  { what: 'a reset', answer: (socket) => socket.resetAndDestroy(), reason: 'reset', detail: /ECONNRESET|UND_ERR_SOCKET/ },
  { what: 'a closed connection', answer: (socket) => socket.end(), reason: 'reset', detail: /UND_ERR_SOCKET/ },
  {
    what: 'something other than HTTP',
    answer: (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'),
    reason: 'bad_http',
    detail: /does not match the HTTP\/1\.1 protocol/,
  },
]

test.each(faults)(
  '$what is the failure $reason, and the next poll is well again',
  async ({ answer, reason, status, detail, retryAfterMs }) => {
    await using endpoint = await rawEndpoint(answer, reply(200, document))
    // Tight only where time itself is the fault: of the body once a status came, else of the whole.
    const bodyMs = reason === 'timeout' ? 300 : 10_000
    await using client = openClient(endpoint.origin, { timeouts: { bodyMs }, now: () => Date.parse('2022-04-11T22:26:58Z') })

    const failure = await client.getEvents({ timeoutMs: reason === 'timeout' && status === undefined ? 500 : 10_000 })
    expect(failure).toEqual({
      kind: 'failure',
      reason,
      detail: expect.stringMatching(detail),
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    })
    expect(failure).not.toHaveProperty('detail', expect.stringMatching(/[\r\n]/))

    expect(await client.getEvents()).toMatchObject({ kind: 'document', changed: true })
  },
)

test('A refused connection is the failure refused, and the next poll is well again', async () => {
  const placeholder = createServer().listen(0, '127.0.0.1')
  await once(placeholder, 'listening')
  const { port } = addressOf(placeholder)
  placeholder.close()
  await once(placeholder, 'close')

  await using client = openClient(`http://127.0.0.1:${port}`)
  expect(await client.getEvents()).toMatchObject({ kind: 'failure', reason: 'refused', detail: expect.stringMatching(/imds\.endpoint/) })

  await using _back = await rawEndpointOn(port, reply(200, document))
  expect(await client.getEvents()).toMatchObject({ kind: 'document' })
})

test('A redirect is never followed: its target sees nothing', async () => {
  await using trap = await rawEndpoint(reply(200, document))
  await using endpoint = await rawEndpoint(reply(307, '', { location: `${trap.origin}/metadata/scheduledevents?api-version=2020-07-01` }))
  await using client = openClient(endpoint.origin)
  expect(await client.getEvents()).toMatchObject({ reason: 'redirect', status: 307 })
  expect(await client.startRequests({ eventIds: ['A'], incarnation: 1 })).toMatchObject({ kind: 'rejected', status: 307 })
  expect(trap.connections()).toBe(0)
})

test('An endless body is dropped at the cap: nothing of it is kept', async () => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  assert.ok(typeof collect === 'function')
  const held = (): number => {
    collect()
    return process.memoryUsage().arrayBuffers
  }
  await using endpoint = await rawEndpoint(drip(chunked, `40000\r\n${'x'.repeat(0x40000)}\r\n`, 1))
  await using client = openClient(endpoint.origin)
  expect(await client.getEvents()).toMatchObject({ reason: 'too_large' })
  const before = held()
  const results = []
  for (let round = 0; round < 30; round += 1) results.push(await client.getEvents())
  expect(results.every((result) => result.kind === 'failure' && result.reason === 'too_large')).toBe(true)
  // Thirty bodies at the cap would be 30 MiB, however often they were collected; what is on its way to be freed is gone at a later look.
  await expect.poll(() => held() - before, { timeout: 10_000 }).toBeLessThan(15 * 1024 * 1024)
})

test('The reason of an abort is what the call rejects with: before it, while connecting and while waiting', async () => {
  await using endpoint = await rawEndpoint(() => {})
  await using client = openClient(endpoint.origin)
  const reason = new Error('enough')
  await expect(client.getEvents({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  expect(endpoint.requests).toEqual([])

  const connecting = new AbortController()
  const first = client.getEvents({ signal: connecting.signal })
  connecting.abort(reason)
  await expect(first).rejects.toBe(reason)

  const waiting = new AbortController()
  const second = client.getEvents({ signal: waiting.signal })
  await expect.poll(() => endpoint.requests.length).toBe(1)
  waiting.abort(reason)
  await expect(second).rejects.toBe(reason)
})

test('Closing the client ends what is in flight, and every later call, as the failure closed', async () => {
  await using endpoint = await rawEndpoint(() => {})
  await using client = openClient(endpoint.origin)
  const hanging = client.getEvents()
  await expect.poll(() => endpoint.requests.length).toBe(1)
  await Promise.all([client.close(), client.close()])
  expect(await hanging).toMatchObject({ kind: 'failure', reason: 'closed' })
  expect(await client.getEvents()).toMatchObject({ kind: 'failure', reason: 'closed' })
})
