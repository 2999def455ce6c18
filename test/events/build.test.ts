import { describe, expect, it } from 'vitest'
import { buildEvent, eventBytes, type EventParts, maxEventBytes } from '../../src/events/build.ts'
import type { AttributeValue } from '../../sinks/cloud-event.ts'

const parts: EventParts = {
  id: 'a:ended',
  source: '/unidentified/web_0',
  type: 'foreshock.scheduledevent.completed.v1',
  subject: '/unidentified/web_0/scheduledevents/a',
  at: Date.parse('2026-05-21T10:00:00Z'),
  schema: 'scheduledevent',
  partitionkey: 'a',
  extensions: {},
  data: {},
}
const refusal = (part: Partial<EventParts>): unknown => {
  try {
    return buildEvent({ ...parts, ...part })
  } catch (error) {
    return error
  }
}

describe('buildEvent', () => {
  it('adds what follows from the parts, and leaves out what has no value', () => {
    expect(buildEvent({ ...parts, extensions: { azeventtype: 'Freeze', azeventsource: null, severitynumber: 9, test: true } })).toEqual({
      specversion: '1.0',
      id: 'a:ended',
      source: '/unidentified/web_0',
      type: 'foreshock.scheduledevent.completed.v1',
      subject: '/unidentified/web_0/scheduledevents/a',
      time: '2026-05-21T10:00:00.000Z',
      datacontenttype: 'application/json',
      dataschema: 'https://foreshock.dev/schemas/scheduledevent.v1.json',
      partitionkey: 'a',
      azeventtype: 'Freeze',
      severitynumber: 9,
      test: true,
      data: {},
    })
  })

  it('trims strings', () => {
    expect(buildEvent({ ...parts, id: ' a ', extensions: { azeventtype: ' Freeze\n' } })).toMatchObject({ id: 'a', azeventtype: 'Freeze' })
  })

  it.each(['', 'Upper', 'with_underscore', 'with-dash', 'x'.repeat(21), 'id', 'data', 'partitionkey', 'é'])(
    'refuses the extension name %j',
    (name) => {
      expect(refusal({ extensions: { [name]: 'x' } })).toMatchObject({
        code: 'event_invalid',
        message: expect.stringContaining('extension name'),
      })
    },
  )

  it.each<AttributeValue>([
    '',
    ' ',
    'a\u0000b',
    'a\u007fb',
    'a\u0085b',
    'a\ud800b',
    'a\uffffb',
    'a\nb',
    1.5,
    2 ** 31,
    -(2 ** 31) - 1,
    Number.NaN,
  ])('refuses the value %j', (value) => {
    expect(refusal({ extensions: { test: value } })).toMatchObject({
      code: 'event_invalid',
      message: expect.stringContaining('expected test'),
    })
  })

  it.each<AttributeValue>([2 ** 31 - 1, -(2 ** 31), 0, false, '計画', '😀'])('takes the value %j', (value) => {
    expect(refusal({ extensions: { test: value } })).toMatchObject({ test: value })
  })

  it.each<Partial<EventParts>>([
    { id: '' },
    { id: 'x'.repeat(129) },
    { source: 'with space' },
    { source: '/münchen' },
    { subject: ' ' },
    { partitionkey: '\u0000' },
    { type: '' },
    { at: Number.NaN },
    { at: -1 },
    { at: Date.UTC(10_000, 0) },
  ])('refuses %j', (part) => {
    expect(refusal(part)).toMatchObject({ name: 'ForeshockError', code: 'event_invalid' })
  })

  it('takes exactly 64 KiB of structured JSON, and not a byte more', () => {
    const room = maxEventBytes - eventBytes(buildEvent({ ...parts, data: { text: '' } }))
    expect(eventBytes(buildEvent({ ...parts, data: { text: 'x'.repeat(room) } }))).toBe(65_536)
    expect(refusal({ data: { text: 'x'.repeat(room + 1) } })).toMatchObject({
      code: 'event_invalid',
      message: expect.stringContaining('got 65537'),
    })
    expect(refusal({ data: { text: '€'.repeat(room / 2) } })).toMatchObject({ code: 'event_invalid' })
  })
})
