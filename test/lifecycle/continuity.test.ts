import { describe, expect, it } from 'vitest'
import { entry, hours, inShort, key, onlyEnd, onlyState, started, Watcher } from './watcher.ts'

const kinds = (anomalies: readonly { kind: string }[]): string[] => anomalies.map((anomaly) => anomaly.kind)

function seenAtTen(): Watcher {
  const watcher = new Watcher()
  watcher.poll(8, [entry({ EventId: 'ended' })])
  watcher.poll(10, [entry()])
  return watcher
}

describe('a single lower incarnation is a stale replica', () => {
  it('removals and changes wait, and nothing else moves on', () => {
    const watcher = seenAtTen()
    const before = watcher.state
    watcher.machine = { ...watcher.machine, bootId: 'boot-2' }
    const { transitions, anomalies } = watcher.poll(9, [])
    expect(transitions).toEqual([])
    expect(kinds(anomalies)).toEqual(['lower-incarnation'])
    expect(watcher.state).toEqual({ ...before, lowerReading: true, toldAnomalies: expect.any(Array) })
    expect(watcher.poll(10, [entry()]).transitions).toEqual([])
    expect(watcher.state).toMatchObject({ lowerReading: false, epoch: 0, incarnation: 10, bootId: 'boot-2' })
  })

  it('a change of a known event waits as well', () => {
    const watcher = seenAtTen()
    expect(watcher.poll(9, [entry({ DurationInSeconds: 1 })]).transitions).toEqual([])
    expect(watcher.state.live[key]?.event.durationInSeconds).toBe(9)
    expect(onlyState(watcher.poll(11, [entry(started)])).changes).toEqual([{ field: 'eventStatus', from: 'Scheduled', to: 'Started' }])
  })

  it('additions count at once', () => {
    const watcher = seenAtTen()
    expect(onlyState(watcher.poll(9, [entry({ EventId: 'new' })]))).toMatchObject({ key: 'new', status: 'scheduled' })
    expect(onlyEnd(watcher.poll(11, [entry()]))).toMatchObject({ key: 'new', outcome: 'vanished', evidence: { d: 2 } })
  })

  it('an id that has ended does not come back by it', () => {
    const watcher = seenAtTen()
    expect(watcher.poll(9, [entry({ EventId: 'ended' })]).transitions).toEqual([])
    expect(Object.keys(watcher.state.ended)).toEqual(['ended'])
  })

  it('is told once, however often the same two replicas take turns', () => {
    const watcher = seenAtTen()
    const told = [9, 10, 9, 10, 9].flatMap((incarnation) => kinds(watcher.poll(incarnation, [entry()]).anomalies))
    expect(told).toEqual(['lower-incarnation'])
  })

  it('needs a number on both sides', () => {
    const watcher = seenAtTen()
    expect(onlyEnd(watcher.poll('9', [])).evidence).toMatchObject({ rule: 'D', d: null })
    expect(watcher.state).toMatchObject({ lowerReading: false, epoch: 0, incarnation: '9' })
  })
})

describe('a lower incarnation in two polls running is a restart', () => {
  it('opens a new epoch, in which nothing is concluded about what is gone', () => {
    const watcher = new Watcher()
    watcher.poll(10, [entry(), entry({ EventId: 'run' }, started), entry({ EventId: 'stays' })])
    watcher.poll(1, [entry({ EventId: 'stays' })])
    const { transitions, anomalies } = watcher.poll(2, [entry({ EventId: 'stays' }), entry({ EventId: 'new' })])
    expect(transitions.map((transition) => `${transition.key} ${inShort(transition)}`)).toEqual([
      `${key} vanished/D`,
      'run vanished/D',
      'new scheduled',
    ])
    const evidence = transitions.map((transition) => transition.kind === 'end' && transition.evidence)
    expect(evidence[0]).toEqual({ rule: 'D', d: null, gapSeconds: 2, bootChanged: false, inconclusive: 'restart' })
    expect(evidence[1]).toMatchObject({ rule: 'D', inconclusive: 'restart', likely: 'completed' })
    expect(kinds(anomalies)).toEqual(['incarnation-restarted'])
    expect(watcher.state).toMatchObject({ epoch: 1, incarnation: 2, lowerReading: false })
  })

  it('and the rules hold again within the new epoch', () => {
    const watcher = new Watcher()
    watcher.poll(10, [entry()])
    watcher.poll(1, [entry()])
    watcher.poll(1, [entry()])
    expect(onlyEnd(watcher.poll(2, [])).evidence).toMatchObject({ rule: 'A', d: 1 })
  })

  it('an event whose entry was broken across the restart has no distance any more', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    watcher.poll(10, [entry({ EventStatus: null })])
    watcher.poll(1, [entry({ EventStatus: null })])
    watcher.poll(2, [entry({ EventStatus: null })])
    expect(onlyEnd(watcher.poll(2, [])).evidence).toMatchObject({ rule: 'D', d: null })
  })
})

describe('a gap of more than 24 h', () => {
  it('with a lower incarnation is a new epoch at once', () => {
    const watcher = new Watcher()
    watcher.poll(213, [entry()])
    const { transitions, anomalies } = watcher.poll(1, [entry({ EventId: 'new' })], 26 * hours)
    expect(transitions.map(inShort)).toEqual(['vanished/D', 'scheduled'])
    expect(kinds(anomalies)).toEqual(['incarnation-restarted'])
    expect(watcher.state).toMatchObject({ epoch: 1, incarnation: 1, lowerReading: false })
  })

  it('leaves alone what still stands there, and reports what changed', () => {
    const watcher = new Watcher()
    watcher.poll(5, [entry(), entry({ EventId: 'same' })])
    expect(onlyState(watcher.poll(9, [entry(started), entry({ EventId: 'same' })], 26 * hours))).toMatchObject({
      status: 'started',
      scheduledObserved: true,
    })
  })
})

describe('another vmId', () => {
  it('forgets what the machine saw from which the disk was cloned', () => {
    const watcher = new Watcher()
    watcher.poll(10, [entry(), entry({ EventId: 'gone' })])
    watcher.poll(11, [entry()])
    watcher.machine = { ...watcher.machine, vmId: 'vm-2' }
    const { transitions, anomalies } = watcher.poll(3, [entry(started), entry({ EventId: 'gone' })])
    expect(transitions.map(inShort)).toEqual(['scheduled', 'started!'])
    expect(transitions.map((transition) => transition.generation)).toEqual([1, 1])
    expect(anomalies).toEqual([])
    expect(watcher.state).toMatchObject({ vmId: 'vm-2', epoch: 0, incarnation: 3, ended: {} })
  })

  it('is not one that differs in case, or is unknown', () => {
    const watcher = new Watcher()
    watcher.poll(10, [entry()])
    watcher.machine = { ...watcher.machine, vmId: 'VM-1' }
    expect(watcher.poll(10, [entry()]).transitions).toEqual([])
    watcher.machine = { ...watcher.machine, vmId: null }
    expect(watcher.poll(10, [entry()]).transitions).toEqual([])
    expect(watcher.state.vmId).toBe('VM-1')
  })
})

describe('a boot id that cannot be read this time', () => {
  it('leaves the remembered one in place', () => {
    const watcher = new Watcher()
    watcher.poll(10, [entry()])
    watcher.machine = { ...watcher.machine, bootId: null }
    watcher.poll(10, [entry()])
    watcher.machine = { ...watcher.machine, bootId: 'boot-2' }
    expect(onlyEnd(watcher.poll(12, [])).evidence).toMatchObject({ rule: 'B', bootChanged: true })
  })
})

describe('a clock that was set back', () => {
  it('by little counts as no gap', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(onlyEnd(watcher.poll(2, [], -5 * 60_000))).toMatchObject({ outcome: 'cancelled', gapSeconds: 0 })
  })

  it('by hours leaves the gap unknown, so nothing is concluded', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    expect(onlyEnd(watcher.poll(2, [], -30 * hours))).toMatchObject({ outcome: 'vanished', evidence: { rule: 'D', inconclusive: 'gap' } })
  })
})

it('a status in the words of our own verdicts is told as unknown', () => {
  for (const EventStatus of ['Vanished', 'ended']) {
    const watcher = new Watcher()
    expect(onlyState(watcher.poll(1, [entry({ EventStatus })])).status).toBe('unknown')
  }
})
