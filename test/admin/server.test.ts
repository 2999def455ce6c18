import { request } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { captureLog } from '../outbox/outbox-events.ts'
import { createMetrics, type MetricsSource } from '../../src/admin/metrics.ts'
import { startAdmin } from '../../src/admin/server.ts'
import type { ScheduledEvent } from '../../src/lifecycle/model.ts'
import { enterState, newcomer } from '../../src/lifecycle/transitions.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

async function start(listen = '127.0.0.1:0', ready = true) {
  const server = await startAdmin(
    listen,
    {
      metrics: async () => 'foreshock_build_info 1\n',
      readiness: () => ({ ready, reasons: ready ? [] : ['IMDS does not answer'] }),
      status: () => ({ version: '1.2.3' }),
    },
    captureLog(),
  )
  open.push(server)
  return server
}

/** A connection of its own a request, so that none is left over. */
const get = (url: string, method = 'GET') => request(url, { method, headers: { connection: 'close' } })

describe('the admin endpoint', () => {
  it('answers its four pages and refuses everything else', async () => {
    const { url } = await start()
    const answers = await Promise.all(['/healthz', '/readyz', '/status', '/metrics?x=1', '/', '/etc/passwd'].map((path) => get(url + path)))
    expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200, 200, 200, 404, 404])
    await Promise.all(answers.map((answer) => answer.body.dump()))
    const post = await get(`${url}/status`, 'POST')
    expect([post.statusCode, post.headers['allow']]).toEqual([405, 'GET, HEAD'])
    await post.body.dump()
  })

  it('says why it is not ready', async () => {
    const { url } = await start('127.0.0.1:0', false)
    const answer = await get(`${url}/readyz`)
    expect(answer.statusCode).toBe(503)
    expect(await answer.body.json()).toEqual({ ready: false, reasons: ['IMDS does not answer'] })
  })

  it('listens on IPv6 where asked', async () => {
    const { url } = await start('[::1]:0')
    expect((await get(`${url}/healthz`)).statusCode).toBe(200)
  })

  it('says what to do about a taken port', async () => {
    const { url } = await start()
    await expect(start(new URL(url).host)).rejects.toThrow(/cannot listen on 127\.0\.0\.1:\d+.*set admin\.listen/)
  })
})

const event = (eventType: string, eventStatus: string): ScheduledEvent => ({
  eventId: 'a',
  eventType,
  eventStatus,
  eventSource: 'Platform',
  notBefore: '2026-05-21T10:15:00Z',
  resources: ['web_0'],
  durationInSeconds: 9,
  resourceType: 'VirtualMachine',
  description: '',
})

describe('the metrics', () => {
  const at = Date.parse('2026-05-21T10:00:00Z')
  const live = [event('Reboot', 'Scheduled'), event('RebalanceRecommendation', 'Acknowledged'), event('Whatever', 'Nonsense')]
  const source: MetricsSource = {
    remembered: () => ({
      lastGoodPollAt: at,
      incarnation: 7,
      live: Object.fromEntries(live.map((one, index) => [`${index}`, newcomer(one, 1)])),
    }),
    sinks: () => [
      {
        name: 'siem',
        type: 'webhook',
        pending: 3,
        dead: 1,
        oldestPendingAt: at - 10_000,
        health: { state: 'failing', since: at, code: 'http_503', detail: 'busy', consecutiveFailures: 1 },
      },
    ],
    now: () => at,
  }
  const seen = (eventType: string, eventStatus: string) =>
    enterState('a', newcomer(event(eventType, eventStatus), 1), event(eventType, eventStatus), reading, 0).transition
  const reading = { document: { incarnation: 1, events: [], broken: [] }, at, bootId: null, vmId: null, vmName: null }

  it('keep labels bounded whatever IMDS sends', async () => {
    const metrics = createMetrics('1.2.3', source)
    metrics.transition(seen('Freeze', 'Scheduled'))
    metrics.transition(seen('Some"Thing\n', 'odd'))
    const text = await metrics.registry.metrics()
    expect(text).toContain('foreshock_events_live{type="Reboot",status="scheduled"} 1')
    expect(text).toContain('foreshock_events_live{type="other",status="other"} 2')
    expect(text).toContain('foreshock_transitions_total{type="other",status="other"} 1')
    expect(text).toContain('foreshock_lead_time_seconds_bucket{le="900",type="Freeze"} 1')
    expect(text).toContain('foreshock_lead_time_seconds_bucket{le="600",type="Freeze"} 0')
  })

  it('measure the gap between good polls only', async () => {
    const metrics = createMetrics('1.2.3', source)
    metrics.poll('ok', at)
    metrics.poll('timeout', at + 1000)
    metrics.poll('ok', at + 4000)
    const text = await metrics.registry.metrics()
    expect(text).toContain('foreshock_polls_total{result="timeout"} 1')
    expect(text).toContain('foreshock_poll_gap_seconds_sum 4')
    expect(text).toContain('foreshock_poll_gap_seconds_count 1')
  })

  it('read the outbox at each scrape', async () => {
    const text = await createMetrics('1.2.3', source).registry.metrics()
    expect(text).toContain('foreshock_outbox_depth{sink="siem"} 3')
    expect(text).toContain('foreshock_outbox_oldest_age_seconds{sink="siem"} 10')
    expect(text).toContain('foreshock_dead_letters{sink="siem"} 1')
    expect(text).toContain('foreshock_sink_healthy{sink="siem"} 0')
    expect(text).toContain('foreshock_document_incarnation 7')
    expect(text).toMatch(/foreshock_build_info\{version="1\.2\.3",node="[\d.]+"\} 1/)
  })
})
