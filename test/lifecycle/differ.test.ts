import { describe, expect, it } from 'vitest'
import { entry, inShort, key, onlyEnd, onlyState, seconds, start, started, Watcher } from './watcher.ts'

const numbered = (from: number, count: number): object[] => Array.from({ length: count }, (_, n) => entry({ EventId: `${from + n}` }))

describe('the table of transitions', () => {
  it('absent -> Scheduled: scheduled', () => {
    const transition = onlyState(new Watcher().poll(1, [entry()]))
    expect(transition).toMatchObject({ key, status: 'scheduled', generation: 1, repeat: 1, changes: [], reappeared: false })
    expect(transition).toMatchObject({ at: start + seconds, incarnation: 1, notBefore: '2026-05-21T10:15:00Z' })
    expect(transition).not.toHaveProperty('anomaly')
  })

  it('absent -> Started: started, without inventing a scheduled', () => {
    const watcher = new Watcher()
    watcher.poll(1, [])
    expect(onlyState(watcher.poll(2, [entry(started)]))).toMatchObject({ status: 'started', scheduledObserved: false, notBefore: null })
  })

  it('Scheduled -> the same again: nothing', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(watcher.poll(1, [entry()])).toMatchObject({ transitions: [], anomalies: [] })
  })

  it('Scheduled -> Scheduled with another NotBefore: scheduled again, with what changed', () => {
    const watcher = new Watcher()
    const first = onlyState(watcher.poll(1, [entry()]))
    const second = onlyState(watcher.poll(2, [entry({ NotBefore: '2026-05-21T11:00:00Z' })]))
    expect(second).toMatchObject({ status: 'scheduled', notBefore: '2026-05-21T11:00:00Z', repeat: 1 })
    expect(second.changes).toEqual([{ field: 'notBefore', from: '2026-05-21T10:15:00Z', to: '2026-05-21T11:00:00Z' }])
    expect(second.digest16).not.toBe(first.digest16)
  })

  it.each([
    ['eventType', { EventType: 'Redeploy' }],
    ['eventSource', { EventSource: 'User' }],
    ['resources', { Resources: ['web_0'] }],
    ['durationInSeconds', { DurationInSeconds: 30 }],
  ])('Scheduled -> Scheduled with another %s: scheduled again', (field, part) => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(onlyState(watcher.poll(2, [entry(part)])).changes.map((change) => change.field)).toEqual([field])
  })

  it('another wording, order of resources or spelling of the id is no other content, and is remembered', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    const same = entry({ Description: 'Other words.', ResourceType: 'VM', Resources: ['web_1', 'web_0'], EventId: key })
    expect(watcher.poll(1, [same]).transitions).toEqual([])
    expect(watcher.state.live[key]?.event).toMatchObject({ description: 'Other words.', resourceType: 'VM', eventId: key })
  })

  it('Scheduled -> Started: started, telling the last known NotBefore under the digest of its own content', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    const transition = onlyState(watcher.poll(2, [entry(started)]))
    expect(transition).toMatchObject({ status: 'started', scheduledObserved: true, notBefore: '2026-05-21T10:15:00Z' })
    expect(transition.event.notBefore).toBeNull()
    expect(transition.digest16).toBe(onlyState(new Watcher().poll(2, [entry(started)])).digest16)
  })

  it('Started -> Started with other content: started again, with what changed', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry(started)])
    const again = onlyState(watcher.poll(2, [entry(started, { DurationInSeconds: 30 })]))
    expect(again).toMatchObject({ status: 'started', changes: [{ field: 'durationInSeconds', from: 9, to: 30 }] })
  })

  it('Started -> absent: completed, with the times of its life', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    watcher.poll(2, [entry(started)], 60 * seconds)
    const end = onlyEnd(watcher.poll(3, [], 30 * seconds))
    expect(end).toMatchObject({ outcome: 'completed', notBefore: '2026-05-21T10:15:00Z', gapSeconds: 30 })
    expect(end.evidence).toEqual({ rule: 'started', d: 1, gapSeconds: 30, bootChanged: false })
    expect(end).toMatchObject({ scheduledAt: start + 1 * seconds, startedAt: start + 61 * seconds, endedAt: start + 91 * seconds })
    expect(end.event.eventStatus).toBe('Started')
  })

  it('ended -> the same id again: the next generation, reappeared once', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    watcher.poll(2, [])
    expect(onlyState(watcher.poll(3, [entry()]))).toMatchObject({ generation: 2, reappeared: true, repeat: 1 })
    expect(onlyState(watcher.poll(4, [entry(started)]))).toMatchObject({ generation: 2, reappeared: false })
    watcher.poll(5, [])
    expect(onlyState(watcher.poll(6, [entry({ EventId: key })]))).toMatchObject({ generation: 3, reappeared: true })
  })

  it('Started -> Scheduled, documented as impossible: scheduled with an anomaly that stays on the event', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry(started)])
    const { transitions, anomalies } = watcher.poll(2, [entry()])
    expect(transitions).toEqual([expect.objectContaining({ status: 'scheduled', anomaly: 'started-to-scheduled' })])
    expect(anomalies).toEqual([expect.objectContaining({ kind: 'started-to-scheduled', key })])
    expect(watcher.state.live[key]?.anomalous).toBe(true)
    expect(onlyState(watcher.poll(3, [entry(started)]))).not.toHaveProperty('anomaly')
    expect(watcher.state.live[key]?.anomalous).toBe(true)
  })

  it.each([
    ['Completed', 'completed'],
    ['COMPLETED', 'completed'],
    ['Canceled', 'cancelled'],
    ['cancelled', 'cancelled'],
  ])('status %s: %s, once for as long as it stands there', (EventStatus, outcome) => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    const end = onlyEnd(watcher.poll(2, [entry({ EventStatus })]))
    expect(end).toMatchObject({ outcome, evidence: { rule: 'status', d: 1 }, event: { eventStatus: EventStatus } })
    expect(watcher.poll(2, [entry({ EventStatus })]).transitions).toEqual([])
    expect(watcher.poll(3, []).transitions).toEqual([])
    expect(onlyState(watcher.poll(4, [entry()]))).toMatchObject({ generation: 2, reappeared: true })
  })

  it('a terminal status of an event that was never seen is told all the same', () => {
    const watcher = new Watcher()
    expect(onlyEnd(watcher.poll(1, [entry({ EventStatus: 'Completed' })]))).toMatchObject({
      outcome: 'completed',
      generation: 1,
      scheduledAt: null,
    })
    expect(watcher.poll(1, [entry({ EventStatus: 'Completed' })]).transitions).toEqual([])
  })

  it.each([
    ['Acknowledged', 'acknowledged'],
    ['In Progress (2)', 'inprogress2'],
    ['Waiting-For-Other-Tenants-Of-The-Host', 'waitingforothertenan'],
    ['计划', 'unknown'],
  ])('unknown status %s: passed on as %s', (EventStatus, status) => {
    expect(onlyState(new Watcher().poll(1, [entry({ EventStatus })]))).toMatchObject({ status, event: { eventStatus: EventStatus } })
  })
})

describe('a state that comes back', () => {
  it('counts its reports within the generation', () => {
    const watcher = new Watcher()
    const other = entry({ DurationInSeconds: 30 })
    for (const [incarnation, event] of [entry(), other, entry(), other, entry()].entries()) watcher.poll(incarnation, [event])
    expect(watcher.told.map((transition) => transition.kind === 'state' && transition.repeat)).toEqual([1, 1, 2, 2, 3])
    watcher.poll(6, [])
    expect(onlyState(watcher.poll(7, [entry()])).repeat).toBe(1)
  })

  it('is counted for the 64 newest only', () => {
    const watcher = new Watcher()
    for (let duration = 0; duration < 200; duration += 1) watcher.poll(duration, [entry({ DurationInSeconds: duration })])
    expect(Object.keys(watcher.state.live[key]?.reported ?? {})).toHaveLength(64)
    expect(onlyState(watcher.poll(200, [entry({ DurationInSeconds: 198 })])).repeat).toBe(2)
  })
})

describe('the order of telling', () => {
  it('is ends first, then by NotBefore with unknown ones last, then by id', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry({ EventId: 'gone', NotBefore: '2027-01-01T00:00:00Z' })])
    const { transitions } = watcher.poll(2, [
      entry({ EventId: 'd' }, started),
      entry({ EventId: 'c', NotBefore: '2026-05-22T00:00:00Z' }),
      entry({ EventId: 'b' }),
      entry({ EventId: 'a' }),
    ])
    expect(transitions.map((transition) => transition.key)).toEqual(['gone', 'a', 'b', 'c', 'd'])
  })
})

describe('the same incarnation with other content', () => {
  it('is applied and noted, once', () => {
    const watcher = new Watcher()
    watcher.poll(5, [entry()])
    const { transitions, anomalies } = watcher.poll(5, [entry(started), entry({ EventId: 'other' })])
    expect(transitions.map(inShort)).toEqual(['started', 'scheduled'])
    expect(transitions.map((transition) => transition.anomaly)).toEqual(['same-incarnation', 'same-incarnation'])
    expect(anomalies.map((anomaly) => anomaly.kind)).toEqual(['same-incarnation', 'same-incarnation'])
    const end = watcher.poll(5, [entry(started)])
    expect(end.transitions).toEqual([expect.objectContaining({ outcome: 'vanished', anomaly: 'same-incarnation' })])
  })

  it('is nothing to note where the incarnation is no number', () => {
    const watcher = new Watcher()
    watcher.poll('abc', [entry()])
    expect(watcher.poll('abc', [entry(started)]).anomalies).toEqual([])
  })
})

describe('what is remembered', () => {
  it('forgets endings after 30 days', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    watcher.poll(2, [])
    for (let day = 0; day < 30; day += 1) watcher.poll(2, [], 24 * 60 * 60 * seconds)
    expect(Object.keys(watcher.state.ended)).toEqual([key])
    watcher.poll(2, [], seconds)
    expect(watcher.state.ended).toEqual({})
  })

  it('keeps the 1000 newest endings, and those that still stand there with a terminal status', () => {
    const watcher = new Watcher()
    const done = entry({ EventId: '0', EventStatus: 'Completed' })
    watcher.poll(1, [done, ...numbered(1, 600)])
    watcher.poll(2, [done, ...numbered(1001, 600)])
    watcher.poll(3, [done])
    expect(watcher.poll(4, [done]).transitions).toEqual([])
    const kept = Object.keys(watcher.state.ended)
    expect(kept).toHaveLength(1000)
    expect(kept).toContain('0')
    expect(kept).toContain('1600')
    expect(kept.filter((id) => Number(id) <= 600)).toHaveLength(400)
  })
})
