import { describe, expect, it } from 'vitest'
import type { CloudEvent } from '../sinks/cloud-event.ts'
import type { Identity } from '../src/events/identity.ts'
import type { ImdsHealth } from '../src/imds/health.ts'
import { emptyState } from '../src/lifecycle/remembered.ts'
import { createSelfReport } from '../src/self-report.ts'
import { web0 } from './support/identity.ts'

const startedAt = Date.parse('2026-05-21T10:00:00Z')

function reporting() {
  const told: CloudEvent[] = []
  const who: { identity: Identity | null; imds: ImdsHealth } = { identity: web0, imds: { state: 'ok', since: startedAt } }
  const report = createSelfReport({
    publisher: { mark: () => {}, publish: (publications) => void told.push(...publications.map(({ event }) => event)) },
    store: { summarize: () => [{ name: 'siem', pending: 4, dead: 0, oldestPendingAt: null, haltedReason: null }] },
    identity: () => who.identity,
    remembered: () => ({ ...emptyState, lastGoodPollAt: startedAt - 90_000 }),
    imds: () => who.imds,
    prefix: 'foreshock',
    scope: 'group',
    version: '1.2.3',
    startedAt,
    now: () => startedAt + 5_000,
  })
  return { report, told, who }
}

describe('what the forwarder tells of itself', () => {
  it('says how long nobody looked before it started, and what waits', () => {
    const { report, told } = reporting()
    report.tell('started', startedAt)
    expect(told[0]).toMatchObject({
      type: 'foreshock.forwarder.started.v1',
      time: '2026-05-21T10:00:00.000Z',
      data: { downSeconds: 90, outbox: { siem: 4 } },
    })
  })

  it('waits until this VM is known and then comes in order, with the times at which it happened', () => {
    const { report, told, who } = reporting()
    who.identity = null
    report.tell('started', startedAt)
    report.tell('heartbeat', startedAt + 1000)
    report.catchUp()
    expect(told).toEqual([])
    who.identity = web0
    report.catchUp()
    report.catchUp()
    expect(told.map(({ type, time }) => [type.split('.').at(-2), time])).toEqual([
      ['started', '2026-05-21T10:00:00.000Z'],
      ['heartbeat', '2026-05-21T10:00:01.000Z'],
    ])
  })

  it('tells an outage only where it was called one, and at its end what it met and how long it was', () => {
    const { report, told, who } = reporting()
    const trouble = { since: startedAt, failures: 1, lastReason: 'timeout' as const, detail: 'no answer in time' }
    report.turn({ kind: 'failing', at: startedAt + 1000, ...trouble })
    report.turn({ kind: 'recovered', at: startedAt + 2000, since: startedAt, durationMs: 2000, failures: 1, wasUnreachable: false })
    expect(told).toEqual([])
    who.imds = { state: 'unreachable', ...trouble, failures: 10 }
    report.turn({ kind: 'unreachable', at: startedAt + 60_000, ...trouble, failures: 10 })
    who.imds = { state: 'ok', since: startedAt + 62_000 }
    report.turn({ kind: 'recovered', at: startedAt + 62_000, since: startedAt, durationMs: 62_000, failures: 12, wasUnreachable: true })
    expect(told.map(({ type }) => type.split('.').at(-2))).toEqual(['imds-unreachable', 'imds-recovered'])
    expect(told.map(({ data }) => [data['failures'], data['lastError'], data['downSeconds']])).toEqual([
      [10, 'no answer in time', 150],
      [12, 'no answer in time', 152],
    ])
  })

  it('counts failed polls as they are at each heartbeat', () => {
    const { report, told, who } = reporting()
    for (const failures of [3, 57]) {
      who.imds = { state: 'failing', since: startedAt, failures, lastReason: 'timeout', detail: 'no answer in time' }
      report.tell('heartbeat')
    }
    expect(told.map(({ data }) => data['failures'])).toEqual([3, 57])
  })
})
