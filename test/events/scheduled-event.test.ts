import { readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventBytes } from '../../src/events/build.ts'
import { buildScheduledEvent } from '../../src/events/scheduled-event.ts'
import { parseDocument } from '../../src/imds/document.ts'
import { diff } from '../../src/lifecycle/differ.ts'
import { emptyState } from '../../src/lifecycle/remembered.ts'
import { faultsOf } from './published-schema.ts'
import { context, endTransition, identity, sampleEvent, scaleSetId, stateTransition } from './sample-transition.ts'

const vmContext = { ...context, scope: 'vm' } as const
const data = {
  eventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
  eventType: 'Reboot',
  eventStatus: 'Scheduled',
  eventSource: 'Platform',
  resourceType: 'VirtualMachine',
  resources: ['BackEnd_IN_0', 'FrontEnd_IN_0'],
  notBefore: '2016-09-19T18:29:47Z',
  description: 'Host server is undergoing maintenance.',
  durationInSeconds: -1,
}

const names = (count: number, prefix = 'n') => Array.from({ length: count }, (_, n) => `${prefix.repeat(59)}${String(n).padStart(5, '0')}`)

describe('the event of a transition', () => {
  it('tells a state', () => {
    const source = scaleSetId.toLowerCase()
    const event = buildScheduledEvent(stateTransition(), context)
    expect(event).toEqual({
      specversion: '1.0',
      id: 'c7061bac-afdc-4513-b24b-aa5f13a16123:scheduled:1d105773e80d3ccc',
      source,
      type: 'foreshock.scheduledevent.scheduled.v1',
      subject: `${source}/scheduledevents/c7061bac-afdc-4513-b24b-aa5f13a16123`,
      time: '2016-09-19T18:15:00.250Z',
      datacontenttype: 'application/json',
      dataschema: 'https://foreshock.dev/schemas/scheduledevent.v1.json',
      partitionkey: 'c7061bac-afdc-4513-b24b-aa5f13a16123',
      azeventtype: 'Reboot',
      azeventsource: 'Platform',
      azincarnation: '7',
      azobserver: `${scaleSetId}/virtualMachines/0`,
      severitytext: 'WARN',
      severitynumber: 13,
      data,
    })
    expect(faultsOf(event)).toEqual([])
  })

  it('tells an end', () => {
    const event = buildScheduledEvent(endTransition(), { ...context, prefix: 'com.contoso.maintenance' })
    expect(event).toMatchObject({
      id: 'c7061bac-afdc-4513-b24b-aa5f13a16123:ended',
      type: 'com.contoso.maintenance.scheduledevent.completed.v1',
      severitynumber: 9,
    })
    expect(event.data).toEqual({
      ...data,
      eventStatus: 'Started',
      outcome: 'completed',
      evidence: { rule: 'started', d: 1, gapSeconds: 1.25, bootChanged: null },
      scheduledAt: '2016-09-19T18:00:00.250Z',
      startedAt: null,
      endedAt: '2016-09-19T18:15:00.250Z',
      gapSeconds: 1.25,
    })
    expect(faultsOf(event)).toEqual([])
  })

  it('tells more about the machine in scope vm', () => {
    const named = sampleEvent({ resources: ['_WEB_0'] })
    const event = buildScheduledEvent(stateTransition({ event: named }), vmContext)
    expect(event.source).toBe(`${scaleSetId}/virtualMachines/0`.toLowerCase())
    expect(event.id).toMatch(/@02aab8a4-74ef-476e-8182-f6d2ba4166a6$/)
    expect(event.data).toMatchObject({
      affectsThisVm: true,
      vm: {
        name: 'web_0',
        vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
        location: 'westeurope',
        zone: '1',
        faultDomain: '0',
        updateDomain: null,
        scaleSet: 'Web',
        tags: { team: 'web' },
      },
    })
    expect(buildScheduledEvent(stateTransition(), vmContext).data['affectsThisVm']).toBe(false)
    const nameless = { ...vmContext, identity: { ...identity, vmName: null, vmId: null } }
    const unknown = buildScheduledEvent(stateTransition(), nameless)
    expect(unknown.data['affectsThisVm']).toBeNull()
    expect(unknown.id).toMatch(/@unknown$/)
    expect([event, unknown].flatMap(faultsOf)).toEqual([])
  })

  it.each([
    ['scheduledObserved, on started alone', { status: 'started', scheduledObserved: false }, { scheduledObserved: false }],
    ['scheduledObserved when it was', { status: 'started' }, { scheduledObserved: true }],
    ['changes', { changes: [{ field: 'resources', from: ['a'], to: [] }] }, { changes: [{ field: 'resources', from: ['a'], to: [] }] }],
    ['reappeared', { reappeared: true }, { reappeared: true }],
    ['an anomaly', { anomaly: 'started-to-scheduled' }, { anomaly: 'started-to-scheduled' }],
    ['the entry as it came', { event: sampleEvent({ raw: { NotBefore: 5 } }) }, { raw: { NotBefore: 5 } }],
  ] as const)('adds %s', (_, part, added) => {
    const event = buildScheduledEvent(stateTransition(part), context)
    expect(event.data).toEqual({ ...data, ...added })
    expect(faultsOf(event)).toEqual([])
  })

  it('leaves out attributes without a value', () => {
    const event = buildScheduledEvent(stateTransition({ incarnation: null, event: sampleEvent({ eventSource: null }) }), {
      ...context,
      identity: { ...identity, vmName: null, resourceId: null },
    })
    expect(Object.keys(event).filter((name) => name.startsWith('az'))).toEqual(['azeventtype'])
    expect(buildScheduledEvent(stateTransition({ incarnation: 0 }), context)['azincarnation']).toBe('0')
  })

  it('keeps an EventId of any length in the subject', () => {
    const event = buildScheduledEvent(stateTransition({ event: sampleEvent({ eventId: 'X'.repeat(200) }) }), context)
    expect(event.subject).toMatch(/\/scheduledevents\/x{200}$/)
    expect(event.id).toMatch(/^sha256-[0-9a-f]{32}:scheduled:1d105773e80d3ccc$/)
    expect(event.partitionkey).toMatch(/^sha256-[0-9a-f]{32}$/)
    expect(event.data['eventId']).toBe('X'.repeat(200))
  })
})

describe('an event that would exceed 64 KiB', () => {
  it('keeps the first resources and says how many there are', () => {
    const event = buildScheduledEvent(stateTransition({ event: sampleEvent({ resources: names(1000) }) }), context)
    expect(event.data).toMatchObject({ resources: names(500), resourcesTotal: 1000 })
    expect(event.id).toBe(buildScheduledEvent(stateTransition({ event: sampleEvent({ resources: names(1000).toReversed() }) }), context).id)
    expect(faultsOf(event)).toEqual([])
  })

  it('does so in the changes as well', () => {
    const changes = [{ field: 'resources', from: names(1000, 'a'), to: names(1000, 'b') }] as const
    const event = buildScheduledEvent(stateTransition({ event: sampleEvent({ resources: names(1000, 'b') }), changes }), context)
    expect(event.data).toMatchObject({ resourcesTotal: 1000, changes: [{ from: names(200, 'a'), to: names(200, 'b') }] })
    expect(faultsOf(event)).toEqual([])
  })

  it('gives up a large raw first', () => {
    const raw = { Extra: '\u0001'.repeat(9000) }
    const event = buildScheduledEvent(stateTransition({ event: sampleEvent({ raw }) }), context)
    expect(event.data['raw']).toEqual({ truncated: expect.stringMatching(/^\{"Extra":"\\u0001/) })
    expect(event.data['resources']).toEqual(data.resources)
    expect(faultsOf(event)).toEqual([])
  })

  it('can always be published, whatever the document holds', () => {
    const body = {
      DocumentIncarnation: '€'.repeat(256),
      Events: [
        {
          EventId: '€'.repeat(256),
          EventType: '€'.repeat(256),
          EventStatus: '€'.repeat(256),
          EventSource: '€'.repeat(256),
          ResourceType: '€'.repeat(256),
          Resources: Array.from({ length: 1200 }, (_, n) => `${n}${'€'.repeat(250)}`),
          NotBefore: 'soon',
          Description: '\u0001'.repeat(8000),
        },
      ],
    }
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}${'t'.repeat(500)}`, '€'.repeat(256)]))
    const parsed = parseDocument(body)
    if (!parsed.ok) throw new Error(parsed.problem)
    const { transitions } = diff(emptyState, { document: parsed.document, at: 0, bootId: null, vmId: null, vmName: null })
    const events = transitions.map((transition) => buildScheduledEvent(transition, { ...vmContext, identity: { ...identity, tags } }))
    expect(events).toHaveLength(1)
    expect(events.map(eventBytes).every((bytes) => bytes <= 65_536)).toBe(true)
    expect(events.flatMap(faultsOf)).toEqual([])
  })
})

describe('every event', () => {
  const folder = new URL('../documents/', import.meta.url)
  const documents = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .filter((file) => parseDocument(JSON.parse(readFileSync(new URL(file, folder), 'utf8'))).ok)

  it.each(documents)('of %s, and its end, stands up to the published schema and the reference SDK', (file) => {
    const parsed = parseDocument(JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
    if (!parsed.ok) throw new Error(parsed.problem)
    const moment = { bootId: null, vmId: null, vmName: 'web_0' }
    const seen = diff(emptyState, { document: parsed.document, at: 0, ...moment })
    const gone = diff(seen.state, { document: { incarnation: 999, events: [], broken: [] }, at: 1000, ...moment })
    const events = [...seen.transitions, ...gone.transitions].flatMap((transition) => [
      buildScheduledEvent(transition, context),
      buildScheduledEvent(transition, vmContext),
    ])
    expect(events).toHaveLength(parsed.document.events.length * 4)
    expect(events.flatMap(faultsOf)).toEqual([])
  })

  it('that an arbitrary entry leads to can be built and read', () => {
    const entry = fc.record({
      EventId: fc.string({ unit: 'binary', maxLength: 60 }),
      EventStatus: fc.oneof(fc.constant('Scheduled'), fc.constant('Started'), fc.string({ unit: 'binary' })),
      EventType: fc.string({ unit: 'binary' }),
      EventSource: fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' })),
      Resources: fc.oneof(fc.jsonValue(), fc.array(fc.string({ unit: 'binary' }))),
      NotBefore: fc.oneof(
        fc.jsonValue(),
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      ),
      Description: fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' })),
      DurationInSeconds: fc.oneof(fc.jsonValue(), fc.integer()),
    })
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 3 }), fc.oneof(fc.jsonValue(), fc.nat()), (Events, DocumentIncarnation) => {
        const parsed = parseDocument({ DocumentIncarnation, Events })
        if (!parsed.ok) throw new Error(parsed.problem)
        const { transitions } = diff(emptyState, { document: parsed.document, at: 0, bootId: null, vmId: null, vmName: 'web_0' })
        expect(transitions.flatMap((transition) => faultsOf(buildScheduledEvent(transition, vmContext)))).toEqual([])
      }),
    )
  })
})
