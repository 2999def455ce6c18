import { describe, expect, it } from 'vitest'
import { entry, hours, inShort, key, onlyEnd, onlyState, started, Watcher } from './watcher.ts'

const noId = { EventId: undefined }

describe('an entry without a usable id', () => {
  it('is one anomaly for each content, not one for each poll', () => {
    const watcher = new Watcher()
    const told = [entry(noId), entry(noId), entry(noId, { DurationInSeconds: 5 }), entry(noId)].map(
      (broken, incarnation) => watcher.poll(incarnation, [broken]).anomalies.length,
    )
    expect(told).toEqual([1, 0, 1, 0])
    expect(watcher.told).toEqual([])
  })

  it('hides no other event', () => {
    expect(onlyState(new Watcher().poll(1, [entry(noId), null, entry()])).status).toBe('scheduled')
  })

  it('with type and resources of a live event that is missing stands for that one', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(watcher.poll(2, [entry(noId, { Resources: ['web_1', 'web_0'] })]).transitions).toEqual([])
    expect(watcher.state.live[key]?.incarnation).toBe(1)
    expect(watcher.poll(2, [entry()]).transitions).toEqual([])
  })

  const foreign = [null, 'x', 7, {}, entry(noId, { EventType: 'Freeze' }), entry(noId, { Resources: ['web_0'] })]

  it.each(foreign)('that stands for nothing known may be any event that is missing, so no verdict is definite: %j', (broken) => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(onlyEnd(watcher.poll(2, [broken]))).toMatchObject({
      outcome: 'vanished',
      evidence: { rule: 'D', d: 1, inconclusive: 'unreadable' },
    })
  })

  it.each([
    ['one that had started', started, false],
    ['one that we approved', {}, true],
  ])('takes the verdict also from %s', (_, part, approved) => {
    const watcher = new Watcher()
    watcher.poll(1, [entry(part)])
    if (approved) watcher.approve()
    expect(onlyEnd(watcher.poll(2, [null]))).toMatchObject({ outcome: 'vanished', evidence: { rule: 'D', inconclusive: 'unreadable' } })
  })

  it('that stays for ever lets every event end all the same', () => {
    const watcher = new Watcher()
    const ids = ['A', 'B', 'C']
    for (const [index, EventId] of ids.entries()) watcher.poll(index, [null, entry({ EventId })])
    watcher.poll(ids.length, [null])
    expect(watcher.told.map(inShort)).toEqual(['scheduled', 'vanished/D', 'scheduled', 'vanished/D', 'scheduled', 'vanished/D'])
    expect(watcher.state.live).toEqual({})
  })

  it('that stands for one missing event leaves the verdict on another alone', () => {
    const watcher = new Watcher()
    const other = { EventId: 'OTHER', Resources: ['web_7'] }
    watcher.poll(1, [entry(), entry(other)])
    expect(watcher.poll(2, [entry(noId, other, noId)]).transitions.map(inShort)).toEqual(['cancelled/A'])
    expect(Object.keys(watcher.state.live)).toEqual(['other'])
  })

  it('with type and resources of an event that stands there itself is another one', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry(), entry({ EventId: 'OTHER', Resources: ['web_7'] })])
    expect(onlyEnd(watcher.poll(2, [entry(), entry(noId)])).evidence).toMatchObject({ rule: 'D', inconclusive: 'unreadable' })
  })

  it('does not hide that a gap or a restart is why nothing is concluded', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(onlyEnd(watcher.poll(2, [null], 25 * hours)).evidence).toMatchObject({ rule: 'D', inconclusive: 'gap' })
  })
})

describe('an entry with an id of its own', () => {
  it('stands for no other event', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(watcher.poll(2, [entry({ EventId: 'OTHER', EventStatus: 5 })]).transitions.map(inShort)).toEqual(['cancelled/A'])
  })
})

describe('a known event', () => {
  it.each([{ EventStatus: 5 }, { EventType: '' }, { EventStatus: null, EventId: key }])(
    'keeps its state while its entry has %j',
    (part) => {
      const watcher = new Watcher()
      watcher.poll(1, [entry()])
      const { transitions, anomalies } = watcher.poll(2, [entry(part)])
      expect(transitions).toEqual([])
      expect(anomalies).toEqual([expect.objectContaining({ kind: 'broken-entry', key })])
      expect(watcher.poll(3, [entry()]).transitions).toEqual([])
    },
  )

  it.each([{ Resources: 5 }, { NotBefore: 'soon' }, { DurationInSeconds: 'long' }, { EventSource: {} }])(
    'keeps its state while %j cannot be read and its status is the same',
    (part) => {
      const watcher = new Watcher()
      watcher.poll(1, [entry()])
      const { transitions, anomalies } = watcher.poll(2, [entry(part)])
      expect(transitions).toEqual([])
      expect(anomalies).toEqual([expect.objectContaining({ kind: 'broken-entry', key })])
      expect(watcher.poll(3, [entry()]).transitions).toEqual([])
    },
  )

  it('takes a new status with what else is readable', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    const transition = onlyState(watcher.poll(2, [entry(started, { DurationInSeconds: 'long' })]))
    expect(transition).toMatchObject({ status: 'started', event: { durationInSeconds: null, raw: { DurationInSeconds: 'long' } } })
  })

  it('is not frozen by a field that never was readable: its other changes count', () => {
    const watcher = new Watcher()
    const odd = { DurationInSeconds: 'long' }
    watcher.poll(1, [entry(odd)])
    expect(onlyState(watcher.poll(2, [entry(odd, { NotBefore: '2026-05-21T11:00:00Z' })])).notBefore).toBe('2026-05-21T11:00:00Z')
    expect(onlyState(watcher.poll(3, [entry({ NotBefore: '2026-05-21T11:00:00Z' })])).changes).toEqual([
      { field: 'durationInSeconds', from: null, to: 9 },
    ])
  })

  it('may have a description that cannot be read: that is no part of its content', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    const { transitions, anomalies } = watcher.poll(2, [entry(started, { Description: 5 })])
    expect(transitions.map(inShort)).toEqual(['started'])
    expect(anomalies).toHaveLength(1)
  })
})

describe('the same id twice', () => {
  it('is one event: the more advanced status, all resources, one anomaly, whatever the order', () => {
    const twins = [
      entry({ Resources: ['web_1'], NotBefore: null }),
      entry(started, { EventId: key, Resources: ['web_0'], DurationInSeconds: 30 }),
      entry(started, { Resources: ['web_2', 'web_0'], DurationInSeconds: 10 }),
    ]
    const results = [twins, twins.toReversed()].map((events) => new Watcher().poll(1, events))
    expect(results[0]).toEqual(results[1])
    expect(results[0]?.transitions).toEqual([
      expect.objectContaining({
        status: 'started',
        event: expect.objectContaining({ resources: ['web_0', 'web_1', 'web_2'], durationInSeconds: 10 }),
      }),
    ])
    expect(results[0]?.anomalies).toEqual([expect.objectContaining({ kind: 'duplicate-id', key })])
  })

  it.each([
    ['Scheduled', 'Acknowledged', 'acknowledged'],
    ['Acknowledged', 'Started', 'started'],
    ['Started', 'Completed', 'completed/status'],
  ])('%s and %s is %s', (one, other, expected) => {
    const { transitions } = new Watcher().poll(1, [entry({ EventStatus: one }), entry({ EventStatus: other })])
    expect(transitions.map((transition) => inShort(transition).replace('!', ''))).toEqual([expected])
  })

  it('and the usable one of two wins', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(watcher.poll(2, [entry({ EventStatus: 5 }), entry(started)]).transitions.map(inShort)).toEqual(['started'])
  })
})

describe('told anomalies', () => {
  it('are bounded, and what still stands in the document is never told twice', () => {
    const watcher = new Watcher()
    const lasting = entry(noId, { DurationInSeconds: -1 })
    let told = 0
    for (let poll = 0; poll < 4; poll += 1) {
      const broken = Array.from({ length: 1999 }, (_, n) => ({ poll, n }))
      told += watcher.poll(poll, [lasting, ...broken]).anomalies.length
    }
    expect(told).toBe(4 * 1999 + 1)
    expect(watcher.state.toldAnomalies).toHaveLength(4096)
  })
})
