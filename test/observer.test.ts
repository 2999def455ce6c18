import { describe, expect, it } from 'vitest'
import type { Identity } from '../src/events/identity.ts'
import { parseDocument } from '../src/imds/document.ts'
import { emptyState } from '../src/lifecycle/remembered.ts'
import type { RememberedState } from '../src/lifecycle/model.ts'
import { createObserver, type ObserverOptions } from '../src/observer.ts'
import type { Publisher } from '../src/publisher.ts'
import { ForeshockError } from '../sinks/error.ts'
import { web0 } from './support/identity.ts'

const start = Date.parse('2026-05-21T10:00:00Z')

function document(incarnation: number, ...statuses: string[]) {
  const parsed = parseDocument({
    DocumentIncarnation: incarnation,
    Events: statuses.map((EventStatus, index) => ({
      EventId: `C7061BAC-AFDC-4513-B24B-AA5F13A1612${index}`,
      EventStatus,
      EventType: 'Reboot',
      Resources: ['web_0'],
      NotBefore: 'Thu, 21 May 2026 10:15:00 GMT',
    })),
  })
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.document
}

function observing(overrides: Partial<ObserverOptions> = {}) {
  const clock = { at: start }
  const commits: { types: string[]; state: RememberedState | undefined }[] = []
  const disk = { full: false }
  const who: { identity: Identity | null } = { identity: web0 }
  const marks: number[] = []
  const publisher: Publisher = {
    mark: (at) => void marks.push(at),
    publish(publications, state) {
      if (disk.full) throw new ForeshockError('state_unusable', 'the disk is full')
      commits.push({ types: publications.map(({ event }) => event.type.split('.').at(-2) ?? ''), state })
    },
  }
  const transitions: string[] = []
  const observer = createObserver({
    publisher,
    remembered: emptyState,
    bootId: 'boot-1',
    identity: () => who.identity,
    decideIdentity: () => who.identity,
    publish: 'all',
    scope: 'group',
    prefix: 'foreshock',
    now: () => clock.at,
    onTransition: (transition) => transitions.push(transition.kind === 'end' ? transition.outcome : transition.status),
    onAnomaly: () => {},
    ...overrides,
  })
  return { observer, clock, commits, marks, disk, who, transitions }
}

describe('the observer', () => {
  it('commits the events of a document together with the state that they follow from', () => {
    const { observer, commits, transitions } = observing()
    observer.observe(document(2, 'Scheduled', 'Started'))
    expect(commits).toHaveLength(1)
    expect(commits[0]?.types.toSorted()).toEqual(['scheduled', 'started'])
    expect(commits[0]?.state).toBe(observer.state())
    expect(transitions).toHaveLength(2)
  })

  it('keeps what it saw while the disk was full, and writes all of it, in order, once it can', () => {
    const { observer, commits, disk } = observing()
    observer.observe(document(2, 'Scheduled'))
    disk.full = true
    const started = document(3, 'Started')
    expect(() => observer.observe(started)).toThrow('the disk is full')
    expect(() => observer.observe(started)).toThrow('the disk is full')
    const over = document(4)
    expect(() => observer.observe(over)).toThrow('the disk is full')
    disk.full = false
    observer.observe(over)
    observer.observe(over)
    expect(commits.map(({ types }) => types)).toEqual([['scheduled'], ['started', 'completed']])
    expect(commits.at(-1)?.state?.live).toEqual({})
  })

  it('waits with a document until this VM is known', () => {
    const { observer, commits, who } = observing()
    const seen = document(2, 'Scheduled')
    who.identity = null
    expect(observer.observe(seen)).toBe(false)
    expect(commits).toEqual([])
    who.identity = web0
    expect(observer.observe(seen)).toBe(true)
    expect(commits.map(({ types }) => types)).toEqual([['scheduled']])
  })

  it('writes down every good poll while an event is under way, and one in thirty seconds while none is', () => {
    const { observer, clock, commits, marks } = observing()
    const quiet = document(1)
    observer.observe(quiet)
    for (let second = 1; second <= 29; second++) {
      clock.at = start + second * 1000
      observer.observe(quiet)
    }
    expect(marks).toEqual([])
    clock.at = start + 30_000
    observer.observe(quiet)
    expect(marks).toEqual([clock.at])
    expect(observer.state().lastGoodPollAt).toBe(clock.at)

    const busy = document(2, 'Scheduled')
    observer.observe(busy)
    marks.length = 0
    for (let second = 31; second <= 35; second++) {
      clock.at = start + second * 1000
      observer.observe(busy)
    }
    expect(marks).toHaveLength(5)
    expect(commits).toHaveLength(2)
  })

  it('shows a lower incarnation to the differ twice, even where the document is the same', () => {
    const { observer, transitions } = observing()
    observer.observe(document(7, 'Scheduled'))
    const lower = document(1)
    observer.observe(lower)
    expect(transitions).toEqual(['scheduled'])
    observer.observe(lower)
    expect(transitions).toEqual(['scheduled', 'vanished'])
  })

  it('publishes only what concerns this VM where it is told so, and remembers everything', () => {
    const { observer, commits } = observing({ publish: 'own', decideIdentity: () => ({ ...web0, vmName: 'web_10' }) })
    observer.observe(document(2, 'Scheduled'))
    expect(commits[0]?.types).toEqual([])
    expect(Object.keys(observer.state().live)).toHaveLength(1)
  })
})
