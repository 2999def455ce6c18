import { describe, expect, it } from 'vitest'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { passes, type EventFilter } from '../../src/events/filter.ts'

const heartbeat: CloudEvent = {
  specversion: '1.0',
  id: 'heartbeat:1',
  source: '/subscriptions/s',
  type: 'com.contoso.forwarder.heartbeat.v1',
  subject: '/subscriptions/s/scheduledevents/a',
  time: '2026-05-21T10:00:00Z',
  datacontenttype: 'application/json',
  dataschema: 'https://example.com/schema',
  partitionkey: 'a',
  data: {},
}
const event: CloudEvent = {
  ...heartbeat,
  type: 'com.contoso.scheduledevent.scheduled.v1',
  azeventtype: 'Reboot',
  azeventsource: 'Platform',
}

const check = (filter: EventFilter | undefined, affects: boolean | null = true, of = event): boolean =>
  passes(filter, of, affects, 'com.contoso')

describe('a filter', () => {
  it.each<[string, EventFilter | undefined, boolean]>([
    ['that is absent lets everything pass', undefined, true],
    ['takes the whole type', { types: ['com.contoso.scheduledevent.scheduled.v1'] }, true],
    ['takes the type without prefix and version', { types: ['scheduledevent.scheduled'] }, true],
    ['takes a family of types', { types: ['scheduledevent.*'] }, true],
    ['refuses another type', { types: ['scheduledevent.started', 'approval.*'] }, false],
    ['takes an event type in any case', { eventTypes: ['freeze', 'reboot'] }, true],
    ['refuses another event type', { eventTypes: ['Freeze'] }, false],
    ['refuses another event source', { eventSources: ['User'] }, false],
    ['wants every part to match', { eventTypes: ['Reboot'], eventSources: ['User'] }, false],
  ])('%s', (_, filter, expected) => {
    expect(check(filter)).toBe(expected)
  })

  it('for this VM takes only events that name it for certain', () => {
    expect([true, false, null].map((affects) => check({ affectsThisVm: true }, affects))).toEqual([true, false, false])
    expect([true, false, null].map((affects) => check({ affectsThisVm: false }, affects))).toEqual([false, true, false])
  })

  it('by event type keeps events without one away', () => {
    expect(check({ eventTypes: ['Reboot'] }, null, heartbeat)).toBe(false)
    expect(check({ types: ['forwarder.*'] }, null, heartbeat)).toBe(true)
  })
})
