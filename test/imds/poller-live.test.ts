import { expect, test } from 'vitest'
import { createPoller } from '../../src/imds/poller.ts'
import { openClient } from './open-client.ts'
import { rawEndpoint, reply } from './raw-endpoint.ts'

test('Over real sockets: what is no document changes nothing, a 304 is the last one again, and the next one counts', async () => {
  const first = '{"DocumentIncarnation":1,"Events":[]}'
  const last = '{"DocumentIncarnation":2,"Events":[]}'
  await using endpoint = await rawEndpoint(
    reply(200, first),
    reply(304),
    reply(200),
    (socket) => socket.resetAndDestroy(),
    reply(400, last),
    reply(200, last),
  )
  await using client = openClient(endpoint.origin)
  const seen: string[] = []
  const lines: string[] = []
  const write = (_: object, message: string): void => {
    lines.push(message)
  }
  const poller = createPoller({
    client,
    intervalMs: 20,
    now: Date.now,
    random: () => 0,
    log: { info: write, warn: write },
    onDocument: ({ incarnation }, changed) => {
      seen.push(`${incarnation} ${changed ? 'changed' : 'same'}`)
    },
  })
  poller.start()
  await expect.poll(() => seen.length, { timeout: 15_000 }).toBeGreaterThanOrEqual(4)
  await poller.stop()
  expect(seen.slice(0, 4)).toEqual(['1 changed', '1 same', '2 changed', '2 same'])
  expect(lines).toEqual([
    expect.stringMatching(/empty body/),
    expect.stringMatching(/connection|ECONNRESET|UND_ERR_SOCKET/i),
    expect.stringMatching(/got 400/),
    expect.stringMatching(/answers again/),
  ])
})
