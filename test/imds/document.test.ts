import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../src/imds/document.ts'
import { incarnationNumber } from '../../src/lifecycle/incarnation.ts'
import type { EventsDocument } from '../../src/lifecycle/model.ts'

const folder = new URL('../documents/', import.meta.url)
const text = (file: string): string => readFileSync(new URL(file, folder), 'utf8')
const json = (file: string): unknown => JSON.parse(text(file))

function read(body: unknown): EventsDocument {
  const parsed = parseDocument(body)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.document
}

const entry = { EventId: 'A-1', EventStatus: 'Scheduled', EventType: 'Freeze', Resources: ['web_0'] }
const many = (count: number) => parseDocument({ Events: Array.from({ length: count }, (_, n) => ({ ...entry, EventId: `e${n}` })) })
const only = (fields: object) => read({ DocumentIncarnation: 1, Events: [{ ...entry, ...fields }] }).events[0]

describe('the captured documents', () => {
  const documents: readonly [file: string, incarnation: number | string | null, events: string[], broken: number][] = [
    ['r01-freeze-5min-notice-2019.json', 279, ['Scheduled Freeze 2019-09-26T15:15:21Z'], 0],
    ['r03-freeze-started-30s-inc16.json', 16, ['Started Freeze null'], 0],
    ['r06-freeze-scheduled-empty-description.json', 7, ['Scheduled Freeze 2023-06-30T22:00:16Z'], 0],
    ['r11-freeze-started-no-duration-inc208.json', 208, ['Started Freeze null'], 0],
    ['r15-preempt-vmss-2019-08-01.json', 1, ['Scheduled Preempt 2024-03-16T19:52:09Z'], 0],
    ['r18-reboot-taskcluster-2017-11-01.json', 1, ['Scheduled Reboot 2019-12-05T00:31:50Z'], 0],
    ['r24-empty-incarnation-0.json', 0, [], 0],
    ['d02-ms-weekday-wrong.json', 2, ['Scheduled Freeze 2026-04-11T22:26:58Z'], 0],
    ['d03-ms-preview-iso-notbefore.json', 1, ['Scheduled Reboot 2016-09-19T18:29:47Z'], 0],
    ['d04-ms-property-example.json', 1, ['Scheduled Reboot 2016-09-19T18:29:47Z'], 0],
    ['d08-terminate-doc-shape.json', 1, ['Scheduled Terminate 2026-05-21T10:05:00Z'], 0],
    [
      'd09-webdevops-examples-no-notbefore.json',
      5,
      ['Scheduled Reboot 2019-09-19T18:29:47Z', 'Scheduled Reboot 2019-09-19T18:29:47Z', 'Started Reboot null'],
      0,
    ],
    ['d10-paskal-testdata.json', 1, ['Scheduled Reboot 2016-09-19T18:29:47Z'], 0],
    ['d12-incarnation-string-id-short.json', 'abc123', ['Scheduled Terminate null'], 0],
    ['d14-no-incarnation-no-ids.json', null, [], 1],
    ['d15-type-and-resources-only.json', 1, [], 1],
    ['d19-mock-server-scheduled-iso.json', 3, ['Scheduled Redeploy 2025-07-15T18:29:47Z'], 0],
    ['s04-unknown-fields-and-types.json', 3, ['Acknowledged RebalanceRecommendation 2026-05-21T10:15:00Z'], 0],
  ]

  it.each(documents)('reads %s', (file, incarnation, events, broken) => {
    const document = read(json(file))
    expect(document.incarnation).toBe(incarnation)
    expect(document.events.map((event) => `${event.eventStatus} ${event.eventType} ${event.notBefore}`)).toEqual(events)
    expect(document.broken).toHaveLength(broken)
  })

  const single: readonly [file: string, outcome: string][] = [
    ['r05-event-first-seen-started.json', 'Started Freeze null'],
    ['r09-underscore-resource-2017.json', 'Scheduled Redeploy 2017-04-17T18:40:06Z'],
    ['r13-user-reboot-standalone-event.json', 'Scheduled Reboot 2023-03-16T14:01:28Z'],
    ['d05-maintenance-page-iso-no-id.json', 'broken'],
  ]

  it.each(single)('reads the single event of %s, which is no document by itself', (file, outcome) => {
    expect(parseDocument(json(file)).ok).toBe(false)
    const { events, broken } = read({ DocumentIncarnation: 1, Events: [json(file)] })
    expect([...events.map((event) => `${event.eventStatus} ${event.eventType} ${event.notBefore}`), ...broken.map(() => 'broken')]).toEqual(
      [outcome],
    )
  })

  const steps: readonly [file: string, incarnations: number[]][] = [
    ['d01-ms-sequence-freeze.json', [1, 2, 3, 4]],
    ['r08-sequence-inc-1-2-4.json', [1, 2, 4]],
    ['s02-incarnation-reset-sequence.json', [213, 1]],
  ]

  it.each(steps)('reads each document of %s', (file, incarnations) => {
    const sequence: unknown = json(file)
    if (!Array.isArray(sequence)) throw new Error('expected a sequence')
    const parsed = sequence.map((step: { document: unknown }) => read(step.document))
    expect(parsed.map((document) => document.incarnation)).toEqual(incarnations)
    expect(parsed.flatMap((document) => document.broken)).toEqual([])
  })

  const refused = [
    'a01-approve-2020.json',
    'a02-approve-2017-string-incarnation.json',
    'a03-approve-several.json',
    'd07-eventgrid-completed-mock.json',
    'd16-playfab-camelcase.json',
    'e02-400-missing-api-version.json',
    'e05-405-lb-style.json',
    'e06-429-lb-style.json',
    'i01-instance-compute-doc.json',
    'r26-eventgrid-user-reboot-started.json',
  ]

  it.each(refused)('refuses %s', (file) => {
    expect(parseDocument(json(file))).toEqual({ ok: false, problem: expect.stringContaining('"Events"') })
  })

  const notJson = [
    'e01-400-no-metadata-header.txt',
    'e07-500-nmi-text.txt',
    'e09-400-taskcluster-mock.txt',
    'e10-html-proxy-502.txt',
    'e12-410-gone.txt',
    'r20-empty-200-body.txt',
    'r22-npd-preempt-message-2025.txt',
    'r23-npd-approval-throttled.txt',
    's01-bom-prefixed.txt',
  ]

  it.each(notJson)('%s is no JSON, and as a text no document', (file) => {
    const body = text(file)
    expect(() => JSON.parse(body)).toThrow(SyntaxError)
    expect(parseDocument(body).ok).toBe(false)
  })

  it('all stand in one of the tables above', () => {
    const named = [documents, single, steps].flatMap((table) => table.map(([file]) => file))
    expect([...named, ...refused, ...notJson, 'MANIFEST.json'].toSorted()).toEqual(readdirSync(folder).toSorted())
  })
})

describe('the body', () => {
  it.each([
    [undefined, 'nothing'],
    [null, 'null'],
    ['', 'the string ""'],
    [[], 'an array of 0'],
    [{}, 'an empty object'],
    [{ Events: {} }, 'an object with "Events"'],
    [{ events: [], documentIncarnation: 1 }, 'an object with "events", "documentIncarnation"'],
  ])('%j is refused', (body, got) => {
    expect(parseDocument(body)).toEqual({ ok: false, problem: `expected an object with an "Events" array, got ${got}` })
  })

  it('with more than 10,000 entries is refused whole, for what was left out would look as if it had ended', () => {
    expect(many(10_000).ok).toBe(true)
    expect(many(10_001)).toEqual({ ok: false, problem: 'expected at most 10000 Events, got 10001' })
  })

  it.each([
    [7, 7, 7],
    [0, 0, 0],
    ['7', '7', null],
    [-1, -1, null],
    [1.5, 1.5, null],
    [2 ** 60, 2 ** 60, null],
    ['', null, null],
    [{}, null, null],
    [undefined, null, null],
  ])('with DocumentIncarnation %j is taken as %j and counts as %j', (sent, kept, number) => {
    const { incarnation } = read({ DocumentIncarnation: sent, Events: [] })
    expect(incarnation).toBe(kept)
    expect(incarnationNumber(incarnation)).toBe(number)
  })
})

describe('NotBefore', () => {
  it.each([
    ['Mon, 11 Apr 2022 22:26:58 GMT', '2022-04-11T22:26:58Z'],
    ['Fri, 1 Apr 2022 02:06:08 GMT', '2022-04-01T02:06:08Z'],
    ['2016-09-19T18:29:47Z', '2016-09-19T18:29:47Z'],
    ['2016-09-19T18:29:47.9999999Z', '2016-09-19T18:29:47Z'],
    ['2016-09-19T20:29:47+02:00', '2016-09-19T18:29:47Z'],
    ['2016-09-19T18:29:47', '2016-09-19T18:29:47Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
  ])('%j is %j', (sent, expected) => {
    const event = only({ NotBefore: sent })
    expect(event?.notBefore).toBe(expected)
    expect(event).not.toHaveProperty('raw')
  })

  it.each(['', '  ', null, undefined])('%j is no time, and nothing to complain about', (sent) => {
    const event = only({ NotBefore: sent })
    expect(event?.notBefore).toBeNull()
    expect(event).not.toHaveProperty('raw')
  })

  it.each([
    '20170702',
    '2017',
    'soon',
    'Mon, 31 Feb 2022 22:26:58 GMT',
    'Mon, 11 Foo 2022 22:26:58 GMT',
    'Mon, 11 Apr 2022 24:00:00 GMT',
    'Mon, 11 Apr 2022 22:26:58 CEST',
    '2023-02-29T00:00:00Z',
    '2016-13-01T00:00:00Z',
    '2016-09-19',
    '2016-09-19T18:29:47+99:00',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59-01:00',
    1_660_000_000,
    {},
    true,
  ])('%j cannot be read: null, with the entry as it came', (sent) => {
    const event = only({ NotBefore: sent })
    expect(event?.notBefore).toBeNull()
    expect(event?.unreadable).toEqual(['notBefore'])
    expect(event?.raw).toEqual({ ...entry, NotBefore: sent })
  })
})

describe('an entry', () => {
  it('keeps what is readable beside what is not', () => {
    const event = only({
      EventSource: 5,
      DurationInSeconds: '9',
      Resources: ['web_1', 7, 'web_0'],
      Description: [],
      ResourceType: 'VirtualMachine',
    })
    expect(event).toMatchObject({
      eventSource: null,
      durationInSeconds: null,
      resources: ['web_0', 'web_1'],
      description: null,
      resourceType: 'VirtualMachine',
      unreadable: ['eventSource', 'resources', 'durationInSeconds'],
      raw: { DurationInSeconds: '9' },
    })
  })

  it('sorts Resources by code unit, takes a single string as one and nothing as none', () => {
    expect(only({ Resources: ['b', 'a', 'B', '_a'] })?.resources).toEqual(['B', '_a', 'a', 'b'])
    expect(only({ Resources: 'web_0' })?.resources).toEqual(['web_0'])
    expect(only({ Resources: null })?.resources).toEqual([])
  })

  it('keeps the spelling of its id, less white space', () => {
    expect(only({ EventId: ' C7061BAC ' })?.eventId).toBe('C7061BAC')
  })

  it.each([
    ['EventId', undefined],
    ['EventId', ''],
    ['EventId', '  '],
    ['EventId', 5],
    ['EventId', 'a\u0000b'],
    ['EventId', 'x'.repeat(257)],
    ['EventId', '__proto__'],
    ['EventId', ' __PROTO__ '],
    ['EventStatus', undefined],
    ['EventStatus', ''],
    ['EventType', null],
    ['EventType', ['Freeze']],
  ])('with %s %j is broken, and hides no other', (field, value) => {
    const { events, broken } = read({ Events: [{ ...entry, [field]: value }, entry] })
    expect(events).toHaveLength(1)
    expect(broken).toEqual([
      expect.objectContaining({
        key: field === 'EventId' ? null : 'a-1',
        eventType: field === 'EventType' ? null : 'Freeze',
        resources: ['web_0'],
        problem: expect.stringContaining(`${field}: expected`),
      }),
    ])
  })

  it.each([[null], ['text'], [5], [[]], [[entry]]])('that is no object (%j) is broken', (value) => {
    expect(read({ Events: [value] }).broken).toEqual([expect.objectContaining({ key: null, eventType: null, resources: [], raw: value })])
  })

  it('has a Description of at most 4 KiB, cut between characters', () => {
    const cut = only({ Description: `a${'€'.repeat(2000)}` })?.description ?? ''
    expect(cut).toBe(`a${'€'.repeat(1365)}`)
    expect(only({ Description: '😀'.repeat(1024) })?.description).toBe('😀'.repeat(1024))
    expect(only({ Description: '😀'.repeat(1025) })?.description).toBe('😀'.repeat(1024))
    expect(only({ Description: '' })?.description).toBe('')
  })

  it('is kept raw only up to 8 KiB and 16 levels', () => {
    const long = only({ NotBefore: 5, Extra: 'x'.repeat(10_000) })?.raw
    expect(long).toEqual({ truncated: expect.stringMatching(/^\{"EventId":"A-1"/) })
    expect(JSON.stringify(long).length).toBeLessThan(10_000)
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    expect(only({ NotBefore: deep })?.raw).toEqual({ truncated: '(nested more than 16 levels deep)' })
  })
})
