import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { apiVersions, defaultApiVersion } from '../../src/imds/api-versions.ts'
import { httpEndpoint } from './http-endpoint.ts'
import { openClient } from './open-client.ts'
import { rawEndpoint, reply } from './raw-endpoint.ts'

const quiet = '{"DocumentIncarnation":1,"Events":[]}'
const captured = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`../documents/${name}`, import.meta.url), 'utf8'))

test.each(apiVersions)(
  'Version %s is asked for by name, with the Metadata header and nothing that a relay would add',
  async (apiVersion) => {
    await using endpoint = await rawEndpoint(reply(200, quiet))
    await using client = openClient(endpoint.origin, { apiVersion, agent: 'foreshock/1.2.3' })
    await client.getEvents()
    const [request = ''] = endpoint.requests
    const [line, ...headers] = request.trimEnd().split('\r\n')
    expect(line).toBe(`GET /metadata/scheduledevents?api-version=${apiVersion} HTTP/1.1`)
    expect(headers.toSorted()).toEqual([
      'Metadata: true',
      'User-Agent: foreshock/1.2.3',
      'connection: keep-alive',
      `host: ${endpoint.origin.slice('http://'.length)}`,
    ])
  },
)

test('The default version is the newest', () => {
  expect(defaultApiVersion).toBe(apiVersions.toSorted().at(-1))
})

test('Polls share one connection', async () => {
  await using endpoint = await httpEndpoint((_, response) => response.end(quiet))
  await using client = openClient(endpoint.origin)
  for (let poll = 0; poll < 20; poll += 1) {
    expect(await client.getEvents()).toMatchObject({ kind: 'document' })
    // The connection is free again a turn after its answer, long before any poll that is due later.
    await setImmediate()
  }
  expect(endpoint.requests).toHaveLength(20)
  expect(endpoint.connections()).toBe(1)
})

test('An approval goes out while a poll hangs', async () => {
  await using endpoint = await httpEndpoint((request, response) => {
    if (request.method === 'POST') response.end()
  })
  await using client = openClient(endpoint.origin)
  const leave = new AbortController()
  const hanging = client.getEvents({ signal: leave.signal })
  expect(await client.startRequests({ eventIds: ['A'], incarnation: 1 })).toEqual({ kind: 'accepted' })
  leave.abort(new Error('enough'))
  await expect(hanging).rejects.toThrow('enough')
})

test('Equal bytes are not parsed again: the same object comes back, unchanged, also for a 304 and after a failure in between', async () => {
  const other = '{"DocumentIncarnation":2,"Events":[]}'
  await using endpoint = await rawEndpoint(
    reply(200, quiet),
    reply(200, quiet),
    reply(500),
    reply(200, quiet),
    reply(200, other),
    reply(304),
    reply(200, quiet),
  )
  await using client = openClient(endpoint.origin)
  const results = []
  for (let poll = 0; poll < 7; poll += 1) results.push(await client.getEvents())
  expect(results.map((result) => (result.kind === 'document' ? result.changed : result.kind))).toEqual([
    true,
    false,
    'failure',
    false,
    true,
    false,
    true,
  ])
  const documents = results.map((result) => (result.kind === 'document' ? result.document : undefined))
  expect(documents[1]).toBe(documents[0])
  expect(documents[3]).toBe(documents[0])
  expect(documents[4]?.incarnation).toBe(2)
  expect(documents[5]).toBe(documents[4])
})

test('A document in many small pieces is read whole', async () => {
  const body = JSON.stringify(await captured('r15-preempt-vmss-2019-08-01.json'))
  await using endpoint = await httpEndpoint((_, response) => {
    for (const character of body) response.write(character)
    response.end()
  })
  await using client = openClient(endpoint.origin)
  expect(await client.getEvents()).toMatchObject({ kind: 'document', document: { events: [{ eventType: 'Preempt' }] } })
})

test.each([
  ['a01-approve-2020.json', '2020-07-01', ['C7061BAC-AFDC-4513-B24B-AA5F13A16123']],
  ['a02-approve-2017-string-incarnation.json', '2017-03-01', ['f020ba2e-3bc0-4c40-a10b-86575a9eabd5']],
  ['a03-approve-several.json', '2020-07-01', ['5DD55B64-45AD-49D3-BBC9-F57D4EA97BD7', 'C7061BAC-AFDC-4513-B24B-AA5F13A16123']],
] as const)('An approval has the documented body: %s', async (name, apiVersion, eventIds) => {
  await using endpoint = await rawEndpoint(reply(200))
  await using client = openClient(endpoint.origin, { apiVersion })
  expect(await client.startRequests({ eventIds, incarnation: 5 })).toEqual({ kind: 'accepted' })
  const [head = '', body = ''] = endpoint.requests[0]?.split('\r\n\r\n') ?? []
  expect(JSON.parse(body)).toEqual(await captured(name))
  expect(head).toMatch(new RegExp(`^POST /metadata/scheduledevents\\?api-version=${apiVersion} HTTP/1\\.1\r\n`))
  expect(head).toMatch(/^Metadata: true\r$/m)
  expect(head).toMatch(/^Content-Type: application\/json\r$/m)
})

test('Only the preview version sends an incarnation, and no made-up one', async () => {
  await using endpoint = await rawEndpoint(reply(200))
  await using preview = openClient(endpoint.origin, { apiVersion: '2017-03-01' })
  await using next = openClient(endpoint.origin, { apiVersion: '2017-08-01' })
  await preview.startRequests({ eventIds: ['A'], incarnation: 0 })
  await preview.startRequests({ eventIds: ['A'], incarnation: null })
  await next.startRequests({ eventIds: ['A'], incarnation: 5 })
  expect(endpoint.requests.map((request) => request.split('\r\n\r\n')[1])).toEqual([
    '{"DocumentIncarnation":"0","StartRequests":[{"EventId":"A"}]}',
    '{"StartRequests":[{"EventId":"A"}]}',
    '{"StartRequests":[{"EventId":"A"}]}',
  ])
})

test.each([
  [reply(200, '{"anything":'), { kind: 'accepted' }],
  [reply(400, '{"error":"Bad request"}'), { kind: 'rejected', status: 400, detail: expect.stringMatching(/Bad request/) }],
  [reply(403), { kind: 'rejected', status: 403, detail: 'expected status 200, got 403' }],
  [reply(429, 'Throttle Result: Too Many Requests'), { kind: 'throttled', status: 429 }],
  [reply(429, '', { 'retry-after': '3' }), { kind: 'throttled', status: 429, retryAfterMs: 3_000 }],
  [reply(410), { kind: 'throttled', status: 410 }],
  [reply(404), { kind: 'uncertain', detail: 'expected status 200, got 404' }],
  [reply(500, 'oops'), { kind: 'uncertain', detail: expect.stringMatching(/500.*oops/) }],
  [reply(503), { kind: 'uncertain', detail: expect.stringMatching(/503/) }],
  [reply(204), { kind: 'uncertain', detail: expect.stringMatching(/204/) }],
  [() => {}, { kind: 'uncertain', detail: expect.stringMatching(/within 300 ms/) }],
] as const)('What became of an approval is told as it is: case %#', async (answer, expected) => {
  await using endpoint = await rawEndpoint(answer)
  await using client = openClient(endpoint.origin)
  expect(await client.startRequests({ eventIds: ['A'], incarnation: null }, { timeoutMs: 300 })).toEqual(expected)
})

test('An approval that meets a reset is uncertain and sent once', async () => {
  await using endpoint = await rawEndpoint((socket) => socket.resetAndDestroy())
  await using client = openClient(endpoint.origin)
  expect(await client.startRequests({ eventIds: ['A'], incarnation: null })).toMatchObject({ kind: 'uncertain' })
  expect(endpoint.requests).toHaveLength(1)
})
