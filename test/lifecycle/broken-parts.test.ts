import { describe, expect, it } from 'vitest'
import { entry, inShort, key, onlyState, started, Watcher } from './watcher.ts'

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

  it.each([{ EventType: 'Freeze' }, { Resources: ['web_0'] }])('with other %j does not', (part) => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(watcher.poll(2, [entry(noId, part)]).transitions.map(inShort)).toEqual(['cancelled/A'])
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
