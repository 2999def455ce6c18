import { describe, expect, it } from 'vitest'
import { entry, hours, onlyEnd, seconds, started, Watcher } from './watcher.ts'

const minutes = 60 * seconds

/** Seen as Scheduled at incarnation 10, NotBefore 15 minutes after `start`. */
function scheduled(...parts: object[]): Watcher {
  const watcher = new Watcher()
  watcher.poll(10, [entry(...parts)], 0)
  return watcher
}

describe('A, cancelled', () => {
  it('one change cannot hold both a start and an end', () => {
    const end = onlyEnd(scheduled().poll(11, []))
    expect(end.outcome).toBe('cancelled')
    expect(end.evidence).toEqual({ rule: 'A', d: 1, gapSeconds: 1, bootChanged: false })
  })

  it('whether NotBefore passed or not', () => {
    expect(onlyEnd(scheduled().poll(11, [], 20 * minutes)).evidence.rule).toBe('A')
  })

  it('holds over exactly 24 h, and not over more', () => {
    expect(onlyEnd(scheduled().poll(11, [], 24 * hours)).evidence).toMatchObject({ rule: 'A', gapSeconds: 86_400 })
    expect(onlyEnd(scheduled().poll(11, [], 24 * hours + 1)).evidence).toMatchObject({
      rule: 'D',
      inconclusive: 'gap',
      gapSeconds: 86_400.001,
    })
  })

  it.each([0, 2, 3])('does not hold over a distance of %d', (d) => {
    expect(onlyEnd(scheduled().poll(10 + d, [])).evidence).toMatchObject({ rule: 'D', d })
  })

  it('counts from the last document that held the event legibly', () => {
    const watcher = scheduled()
    watcher.poll(11, [entry()])
    expect(onlyEnd(watcher.poll(12, [])).evidence).toMatchObject({ rule: 'A', d: 1 })
    const illegible = scheduled()
    illegible.poll(11, [entry({ EventStatus: 5 })])
    expect(onlyEnd(illegible.poll(12, [])).evidence).toMatchObject({ rule: 'D', d: 2 })
  })

  it('does not hold for an unknown status, which may have run', () => {
    expect(onlyEnd(scheduled({ EventStatus: 'Acknowledged' }).poll(11, []))).toMatchObject({
      outcome: 'vanished',
      evidence: { rule: 'D', d: 1 },
    })
  })

  it('does not hold for what had started before', () => {
    const watcher = scheduled(started)
    watcher.poll(11, [entry()])
    expect(onlyEnd(watcher.poll(12, []))).toMatchObject({ outcome: 'vanished', evidence: { rule: 'D', likely: 'completed' } })
  })
})

describe('B, completed', () => {
  it.each([1, 2, 5])('our approval was answered 200 (distance %d)', (d) => {
    const watcher = scheduled()
    watcher.approve()
    const end = onlyEnd(watcher.poll(10 + d, []))
    expect(end).toMatchObject({ outcome: 'completed', evidence: { rule: 'B', d } })
  })

  it.each(['Reboot', 'Redeploy'])('a %s names this VM, and the VM booted', (EventType) => {
    const watcher = scheduled({ EventType })
    watcher.machine = { ...watcher.machine, bootId: 'boot-2' }
    expect(onlyEnd(watcher.poll(12, []))).toMatchObject({ outcome: 'completed', evidence: { rule: 'B', bootChanged: true } })
  })

  it.each([
    ['another type', { EventType: 'Freeze' }, {}],
    ['another VM', { Resources: ['web_10'] }, {}],
    ['no boot', {}, { bootId: 'boot-1' }],
    ['an unknown boot id', {}, { bootId: null }],
    ['an unknown name', {}, { vmName: null }],
  ])('says nothing with %s', (_, part, machine) => {
    const watcher = scheduled(part)
    watcher.machine = { ...watcher.machine, bootId: 'boot-2', ...machine }
    expect(onlyEnd(watcher.poll(12, [])).evidence.rule).toBe('D')
  })

  it('holds for an unknown status as well', () => {
    const watcher = scheduled({ EventStatus: 'Acknowledged' })
    watcher.approve()
    expect(onlyEnd(watcher.poll(11, [])).evidence.rule).toBe('B')
  })

  it('contradicts A when the VM booted and yet only one change lies between', () => {
    const watcher = scheduled()
    watcher.machine = { ...watcher.machine, bootId: 'boot-2' }
    expect(onlyEnd(watcher.poll(11, []))).toMatchObject({
      outcome: 'vanished',
      evidence: { rule: 'D', d: 1, bootChanged: true, inconclusive: 'contradiction', likely: 'completed' },
    })
  })
})

describe('C, vanished but likely completed', () => {
  it('NotBefore passed within the gap', () => {
    const end = onlyEnd(scheduled().poll(12, [], 20 * minutes))
    expect(end).toMatchObject({ outcome: 'vanished', gapSeconds: 1200, evidence: { rule: 'C', d: 2, likely: 'completed' } })
  })

  it('NotBefore is exactly now', () => {
    expect(onlyEnd(scheduled().poll(12, [], 15 * minutes)).evidence.rule).toBe('C')
    expect(onlyEnd(scheduled().poll(12, [], 15 * minutes - 1)).evidence.rule).toBe('D')
  })

  it('does not hold where NotBefore had passed at the last poll already', () => {
    const watcher = scheduled()
    watcher.poll(10, [entry()], 15 * minutes)
    expect(onlyEnd(watcher.poll(12, [], minutes)).evidence).toEqual({ rule: 'D', d: 2, gapSeconds: 60, bootChanged: false })
  })

  it.each([undefined, '12', -1, 1.5])('holds over an unknown distance (incarnation %j)', (incarnation) => {
    expect(onlyEnd(scheduled().poll(incarnation, [], 20 * minutes)).evidence).toMatchObject({ rule: 'C', d: null })
  })

  it('holds over exactly 24 h, and not over more', () => {
    const later = { NotBefore: '2026-05-22T09:00:00Z' }
    expect(onlyEnd(scheduled(later).poll(12, [], 24 * hours)).evidence.rule).toBe('C')
    expect(onlyEnd(scheduled(later).poll(12, [], 24 * hours + 1)).evidence).toMatchObject({ rule: 'D', inconclusive: 'gap' })
  })
})

describe('D, vanished', () => {
  it('before NotBefore nothing leans either way: an approval by someone else shortens the wait', () => {
    const end = onlyEnd(scheduled().poll(12, [], minutes))
    expect(end.outcome).toBe('vanished')
    expect(end.evidence).toEqual({ rule: 'D', d: 2, gapSeconds: 60, bootChanged: false })
  })

  it('without a NotBefore', () => {
    expect(onlyEnd(scheduled({ NotBefore: null }).poll(12, [], 20 * minutes)).evidence.rule).toBe('D')
  })

  it('nothing is concluded over more than 24 h, not even from a start or an approval', () => {
    const running = scheduled(started)
    expect(onlyEnd(running.poll(11, [], 25 * hours))).toMatchObject({
      outcome: 'vanished',
      evidence: { rule: 'D', inconclusive: 'gap', likely: 'completed' },
    })
    const approved = scheduled()
    approved.approve()
    expect(onlyEnd(approved.poll(12, [], 25 * hours))).toMatchObject({ outcome: 'vanished', evidence: { rule: 'D', inconclusive: 'gap' } })
  })

  it('a clock that stepped back makes a gap of 0', () => {
    expect(onlyEnd(scheduled().poll(12, [], -5 * minutes)).evidence).toMatchObject({ rule: 'D', gapSeconds: 0 })
    expect(onlyEnd(scheduled().poll(11, [], -5 * minutes)).evidence).toMatchObject({ rule: 'A', gapSeconds: 0 })
  })
})
