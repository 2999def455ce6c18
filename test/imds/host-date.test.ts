import { expect, test } from 'vitest'
import { hostDate } from '../../src/imds/host-date.ts'
import { rawEndpoint, reply } from './raw-endpoint.ts'

const date = 'Thu, 21 May 2026 10:00:00 GMT'

test.each([
  [reply(200, '{"apiVersions":[]}', { date }), date],
  [reply(404, '', { date }), date],
  [reply(200, '{}'), null],
  [(socket: { destroy(): unknown }) => socket.destroy(), null],
])('The clock of the host is what IMDS says in its Date, where it says anything: case %#', async (answer, expected) => {
  await using endpoint = await rawEndpoint(answer)
  expect(await hostDate(endpoint.origin, 'foreshock/test')).toBe(expected)
  expect(endpoint.requests[0]).toMatch(/^GET \/metadata\/versions HTTP\/1\.1\r\n[^]*^Metadata: true\r$/m)
})

test('A fault of the program is not taken for a silent host', async () => {
  await expect(hostDate('no origin', 'foreshock/test')).rejects.toThrow(/URL/)
})
