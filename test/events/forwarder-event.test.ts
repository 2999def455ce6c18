import { describe, expect, it } from 'vitest'
import { eventBytes } from '../../src/events/build.ts'
import { buildForwarderEvent, type ForwarderStatus } from '../../src/events/forwarder-event.ts'
import { emptyState } from '../../src/lifecycle/remembered.ts'
import { entry, Watcher } from '../lifecycle/watcher.ts'
import { faultsOf } from './published-schema.ts'
import { context, identity, scaleSetId } from './sample-transition.ts'

const at = Date.parse('2026-05-21T10:00:00Z')
const status: ForwarderStatus = {
  version: '0.1.0',
  startedAt: at - 60_500,
  state: emptyState,
  lastGoodPollAt: at - 1000,
  failures: 0,
  lastError: null,
  outbox: { siem: 3, ops: 0 },
}

function seen(count: number, part: object): Watcher {
  const watcher = new Watcher()
  const events = Array.from({ length: count }, (_, n) => entry({ EventId: `e${String(n).padStart(3, '0')}` }, part))
  watcher.poll(7, events)
  return watcher
}

describe('an event about the forwarder', () => {
  it('says how it stands', () => {
    const event = buildForwarderEvent('heartbeat', at, { ...status, state: seen(1, {}).state }, context)
    const source = scaleSetId.toLowerCase()
    expect(event).toMatchObject({
      id: 'heartbeat:2026-05-21T10:00:00.000Z@02aab8a4-74ef-476e-8182-f6d2ba4166a6',
      source,
      type: 'foreshock.forwarder.heartbeat.v1',
      subject: `${source}/forwarders/02aab8a4-74ef-476e-8182-f6d2ba4166a6`,
      time: '2026-05-21T10:00:00.000Z',
      dataschema: 'https://foreshock.dev/schemas/forwarder.v1.json',
      partitionkey: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
      azobserver: `${scaleSetId}/virtualMachines/0`,
      severitytext: 'INFO',
      severitynumber: 9,
      data: {
        version: '0.1.0',
        vm: { name: 'web_0', tags: { team: 'web' } },
        uptimeSeconds: 60.5,
        lastGoodPollAt: '2026-05-21T09:59:59.000Z',
        downSeconds: 1,
        failures: 0,
        lastError: null,
        incarnation: 7,
        liveEvents: [{ eventId: 'e000', eventType: 'Reboot', eventStatus: 'Scheduled', notBefore: '2026-05-21T10:15:00Z' }],
        liveEventsTotal: 1,
        outbox: { siem: 3, ops: 0 },
      },
    })
    expect(faultsOf(event)).toEqual([])
  })

  it.each([
    ['started', 9],
    ['stopping', 9],
    ['heartbeat', 9],
    ['imds-unreachable', 17],
    ['imds-recovered', 9],
  ] as const)('%s has severity %d', (kind, severitynumber) => {
    const event = buildForwarderEvent(kind, at, status, { ...context, scope: 'vm' })
    expect(event).toMatchObject({ type: `foreshock.forwarder.${kind}.v1`, severitynumber })
    expect(faultsOf(event)).toEqual([])
  })

  it('goes by the name of the VM while its vmId is unknown, and says when it never polled', () => {
    const event = buildForwarderEvent(
      'started',
      at,
      { ...status, lastGoodPollAt: null },
      { ...context, identity: { ...identity, vmId: null } },
    )
    expect(event).toMatchObject({
      id: 'started:2026-05-21T10:00:00.000Z@web_0',
      partitionkey: 'web_0',
      data: { downSeconds: null, lastGoodPollAt: null },
    })
    expect(faultsOf(event)).toEqual([])
  })

  it('lists 50 live events, and fewer where they are large', () => {
    const many = buildForwarderEvent('heartbeat', at, { ...status, state: seen(60, {}).state }, context)
    expect(many.data['liveEvents']).toHaveLength(50)
    expect(many.data['liveEventsTotal']).toBe(60)
    const large = seen(60, { EventType: '€'.repeat(256), EventStatus: '€'.repeat(256) })
    const event = buildForwarderEvent('imds-unreachable', at, { ...status, state: large.state, lastError: 'x'.repeat(99_999) }, context)
    expect(event.data['liveEvents']).toHaveLength(10)
    expect(event.data['lastError']).toBe('x'.repeat(1024))
    expect(eventBytes(event)).toBeLessThanOrEqual(65_536)
    expect([many, event].flatMap(faultsOf)).toEqual([])
  })

  it('gives up tags rather than not being told', () => {
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}${'t'.repeat(500)}`, '€'.repeat(256)]))
    const event = buildForwarderEvent('heartbeat', at, status, { ...context, identity: { ...identity, tags } })
    expect(event.data['vm']).toMatchObject({ name: 'web_0', tags: {} })
    expect(faultsOf(event)).toEqual([])
  })
})
