import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../../src/simulator/imds/scenario-file.ts'
import { approve, ask, eventsPath, play, scenarioOf } from './play.ts'

const reboot = { id: 'ABC', type: 'Reboot', resources: ['vm_0'], approvalDelaySeconds: 0 }
const path = eventsPath()

/** The status, or the code of the failure. */
async function outcome(url: string): Promise<number | string> {
  return ask(url + path).then(
    ({ status, text }) => (status === 200 && text === '' ? 'empty' : status),
    (error: NodeJS.ErrnoException) => error.code ?? 'none',
  )
}

/** What a client sees where the answer does not come through. */
function lost(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ECONNRESET') throw error
}

describe('a fault', () => {
  it('status answers another status with the usual or a given body, and does not carry the request out', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'status', status: 429, headers: { 'Retry-After': '7' } })
    expect(await ask(simulator.url + path)).toMatchObject({
      status: 429,
      headers: { 'retry-after': '7' },
      text: '{"error":"Too many requests"}',
    })
    expect((await approve(simulator.url, 'ABC')).status).toBe(429)
    expect(simulator.moment().events).toMatchObject([{ status: 'Scheduled' }])
    simulator.setFault({ kind: 'status', status: 410 })
    expect(await ask(simulator.url + path)).toMatchObject({ status: 410, text: '' })
    simulator.setFault({ kind: 'status', status: 500, body: 'pod list is empty' })
    expect(await ask(simulator.url + path)).toMatchObject({ status: 500, text: 'pod list is empty' })
  })

  it('html is the page of a proxy', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'html' })
    const page = await readFile(join(import.meta.dirname, '../../documents/e10-html-proxy-502.txt'), 'utf8')
    expect(await ask(simulator.url + path)).toMatchObject({
      status: 502,
      text: page,
      headers: { 'content-type': 'text/html' },
    })
    simulator.setFault({ kind: 'html', status: 200 })
    expect((await ask(simulator.url + path)).status).toBe(200)
  })

  it('delay gives the right answer late', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'delay', delayMs: 60 })
    const before = performance.now()
    expect((await ask(simulator.url + path)).text).toContain('ABC')
    expect(performance.now() - before).toBeGreaterThan(55)
  })

  it('truncate cuts the connection amid the body', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'truncate' })
    await expect(ask(simulator.url + path)).rejects.toMatchObject({ code: 'ECONNRESET', message: 'aborted' })
  })

  it.for(['reset', 'truncate', 'empty', 'garbage'] as const)(
    '%s loses the answer of an approval that counts all the same',
    async (kind) => {
      const simulator = await play(scenarioOf({ events: [reboot] }))
      simulator.setFault({ kind })
      await approve(simulator.url, 'ABC').catch(lost)
      expect(simulator.moment().events).toMatchObject([{ status: 'Started' }])
    },
  )

  it('garbage is a 200 that is neither JSON nor UTF-8, empty one of zero bytes', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'garbage' })
    const garbage = await ask(simulator.url + path)
    expect([garbage.status, garbage.text.includes('\uFFFD')]).toEqual([200, true])
    simulator.setFault({ kind: 'empty' })
    expect(await ask(simulator.url + path)).toMatchObject({ status: 200, text: '', headers: { 'content-length': '0' } })
  })

  it('hang never answers', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setFault({ kind: 'hang' })
    const patience = new AbortController()
    const hanging = ask(simulator.url + path, { signal: patience.signal })
    await expect.poll(() => simulator.requests.length).toBe(1)
    const first = await Promise.race([hanging, sleep(100, 'silence')])
    patience.abort()
    await expect(hanging).rejects.toMatchObject({ name: 'AbortError' })
    expect(first).toBe('silence')
  })

  it('lasts from its time to its end, for every nth request of each machine', async () => {
    const faults = [{ kind: 'status', status: 500, atSeconds: 10, forSeconds: 5, every: 2 }]
    const simulator = await play(scenarioOf({ vms: [{ name: 'a' }, { name: 'b' }], events: [], faults }))
    expect([await outcome(simulator.url), await outcome(simulator.url)]).toEqual([200, 200])
    simulator.to(10)
    const other = simulator.urls[1] ?? ''
    expect([await outcome(simulator.url), await outcome(other), await outcome(simulator.url), await outcome(other)]).toEqual([
      200, 200, 500, 500,
    ])
    expect([await outcome(simulator.url), await outcome(simulator.url)]).toEqual([200, 500])
    simulator.to(15)
    expect([await outcome(simulator.url), await outcome(simulator.url)]).toEqual([200, 200])
  })

  it('hits only the requests that it names', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    const statuses = async (): Promise<number[]> => [
      (await ask(simulator.url + path)).status,
      (await ask(`${simulator.url}/metadata/instance?api-version=2025-04-07`)).status,
      (await approve(simulator.url, 'ABC')).status,
    ]
    simulator.setFault({ kind: 'status', status: 503, on: ['instance'] })
    expect(await statuses()).toEqual([200, 503, 200])
    simulator.setFault({ kind: 'status', status: 503, on: ['approvals', 'events'] })
    expect(await statuses()).toEqual([503, 200, 503])
  })

  it('set by hand lasts as many requests as it says, or until it is cleared', async () => {
    const simulator = await play(scenarioOf({ events: [] }))
    simulator.setFault({ kind: 'empty', times: 2 })
    expect([await outcome(simulator.url), await outcome(simulator.url), await outcome(simulator.url)]).toEqual(['empty', 'empty', 200])
    simulator.setFault({ kind: 'reset' })
    expect(await outcome(simulator.url)).toBe('ECONNRESET')
    simulator.clearFaults()
    expect(await outcome(simulator.url)).toBe(200)
  })
})

describe('the scenario flaky', () => {
  it('fails in many ways and tells its story in between', async () => {
    const simulator = await play(await loadScenario('flaky'))
    const outcomes = new Map<number | string, number>()
    for (let seconds = 0; seconds < 1600; seconds += 40) {
      // The delays would only take their time.
      if (seconds >= 480 && seconds < 600) continue
      simulator.to(seconds)
      const came = await outcome(simulator.url)
      outcomes.set(came, (outcomes.get(came) ?? 0) + 1)
    }
    expect(new Set(outcomes.keys())).toEqual(new Set([200, 410, 429, 500, 502, 'ECONNRESET', 'empty']))
    expect(outcomes.get(200)).toBeGreaterThan(15)
  })
})
