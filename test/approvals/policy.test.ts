import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, test } from 'vitest'
import type { LiveEvent } from '../../src/lifecycle/model.ts'
import { decide, type PolicyRule, type PolicyView } from '../../src/approvals/policy.ts'
import { isWithin } from '../../src/approvals/time-window.ts'
import { approval, eventId, openStage, reboot } from './stage.ts'

const start = Date.parse('2026-05-21T10:00:00Z')

function view(
  event: Partial<LiveEvent['event']> = {},
  more: Omit<Partial<PolicyView>, 'live'> & { live?: Partial<LiveEvent> } = {},
): PolicyView {
  const { live, ...rest } = more
  const notBefore = '2026-05-21T10:15:00Z'
  return {
    live: {
      event: {
        eventId,
        eventType: 'Reboot',
        eventStatus: 'Scheduled',
        eventSource: 'User',
        notBefore,
        resources: ['web_0'],
        durationInSeconds: 8,
        resourceType: null,
        description: null,
        ...event,
      },
      generation: 1,
      reported: {},
      incarnation: 1,
      epoch: 0,
      lastNotBefore: notBefore,
      scheduledObserved: true,
      scheduledAt: start,
      startedAt: null,
      approved: false,
      anomalous: false,
      ...live,
    },
    vmName: 'web_0',
    now: start,
    delivered: () => false,
    ...rest,
  }
}

const rule = (when: PolicyRule['when'], more: Partial<PolicyRule> = {}): PolicyRule => ({ when, after: [], delaySeconds: 0, ...more })

describe('a rule', () => {
  it.each<[PolicyRule['when'], Partial<LiveEvent['event']>, boolean]>([
    [{ eventSource: ['user'] }, {}, true],
    [{ eventSource: ['User'] }, { eventSource: 'Platform' }, false],
    [{ eventSource: ['User'] }, { eventSource: null }, false],
    [{ eventType: ['Freeze', 'Reboot'] }, {}, true],
    [{ eventType: ['Freeze'] }, {}, false],
    [{ maxDurationSeconds: 8 }, { durationInSeconds: 8 }, true],
    [{ maxDurationSeconds: 8 }, { durationInSeconds: 9 }, false],
    [{ maxDurationSeconds: 8 }, { durationInSeconds: -1 }, false],
    [{ maxDurationSeconds: 8 }, { durationInSeconds: null }, false],
    [{ affectsThisVm: true }, {}, true],
    [{ affectsThisVm: true }, { resources: ['web_10'] }, false],
    [{ affectsThisVm: false }, { resources: ['web_10'] }, true],
    [{ resourcesAtMost: 1 }, { resources: ['web_0', 'web_1'] }, false],
    [{ minNoticeSeconds: 900 }, {}, true],
    [{ minNoticeSeconds: 901 }, {}, false],
    [{ eventSource: ['User'], maxDurationSeconds: 5 }, {}, false],
  ])('%j against %j holds: %s', (when, event, expected) => {
    expect(decide([rule(when)], view(event)).kind).toBe(expected ? 'approve' : 'none')
  })

  it('has nothing to say of an event that has started, or went back from Started to Scheduled', () => {
    expect(decide([rule({ affectsThisVm: true })], view({ eventStatus: 'Started' })).kind).toBe('none')
    expect(decide([rule({ affectsThisVm: true })], view({}, { live: { anomalous: true } })).kind).toBe('none')
  })

  it('that comes first decides, also where it has to wait', () => {
    const rules = [rule({ eventSource: ['User'] }, { after: ['siem'] }), rule({ eventType: ['Reboot'] })]
    expect(decide(rules, view())).toEqual({ kind: 'wait', rule: 0, for: 'siem has not delivered the event yet' })
    expect(decide(rules, view({}, { delivered: (sink) => sink === 'siem' }))).toMatchObject({ kind: 'approve', rule: 0 })
  })

  it('waits for its delay, and says at once when that ends after NotBefore', () => {
    const patient = [rule({ eventSource: ['User'] }, { delaySeconds: 60 })]
    expect(decide(patient, view({}, { now: start + 59_999 })).kind).toBe('wait')
    expect(decide(patient, view({}, { now: start + 60_000 })).kind).toBe('approve')
    expect(decide([rule({ eventSource: ['User'] }, { delaySeconds: 901 })], view())).toMatchObject({
      kind: 'late',
      detail:
        'not approved before NotBefore 2026-05-21T10:15:00Z: delaySeconds ends at 2026-05-21T10:15:01.000Z; Azure starts it by itself',
    })
  })

  it('that waits for a sink until NotBefore says so then', () => {
    const rules = [rule({ eventSource: ['User'] }, { after: ['drain', 'siem'] })]
    const late = decide(rules, view({}, { now: start + 900_000, delivered: (sink) => sink === 'siem' }))
    expect(late).toMatchObject({ kind: 'late', detail: expect.stringContaining('drain has not delivered the event yet') })
  })

  it('waits for its time window', () => {
    const rules = [rule({ eventSource: ['User'], timeWindows: [{ from: '10:05', to: '11:00', timeZone: 'UTC' }] })]
    expect(decide(rules, view()).kind).toBe('wait')
    expect(decide(rules, view({}, { now: start + 300_000 })).kind).toBe('approve')
  })
})

describe('a time window', () => {
  // 2026-05-21 is a Thursday.
  const night = { days: ['thu'], from: '22:00', to: '04:00', timeZone: 'UTC' } as const
  it.each([
    ['2026-05-21T22:00:00Z', true],
    ['2026-05-22T03:59:59Z', true],
    ['2026-05-22T04:00:00Z', false],
    ['2026-05-22T22:00:00Z', false],
    ['2026-05-21T03:00:00Z', false],
  ])('over midnight belongs to the day on which it began: %s is %s', (time, expected) => {
    expect(isWithin(night, Date.parse(time))).toBe(expected)
  })

  it('goes by the clock on the wall, summer time included', () => {
    const window = { from: '09:00', to: '10:00', timeZone: 'Europe/Zurich' }
    expect(isWithin(window, Date.parse('2026-07-01T07:30:00Z'))).toBe(true)
    expect(isWithin(window, Date.parse('2026-12-01T07:30:00Z'))).toBe(false)
    expect(isWithin(window, Date.parse('2026-12-01T08:30:00Z'))).toBe(true)
  })

  it('may end with the day', () => {
    const window = { from: '23:00', to: '24:00', timeZone: 'UTC' }
    expect(isWithin(window, Date.parse('2026-05-21T23:59:59Z'))).toBe(true)
    expect(isWithin(window, Date.parse('2026-05-22T00:00:00Z'))).toBe(false)
  })
})

test('a user reboot is approved by policy, once the sink has it, and told with the rule', async () => {
  const stage = await openStage({ control: null, approvals: { auto: [{ when: { eventSource: 'User' }, after: ['hook'] }] } })
  const told = await stage.told('ok')
  expect(told.data).toMatchObject({
    via: 'policy',
    requestedBy: 'policy',
    reason: 'approvals.auto[0]: eventSource ["User"], after hook',
    messageId: null,
  })
  expect(stage.events.map(({ type }) => type.split('.').at(-2))).toEqual(['started', 'scheduled', 'relayed'])
  expect(stage.imds.posts).toHaveLength(1)
  await stage.forwarder.stop()
  expect(stage.events.filter(({ type }) => type.includes('.approval.'))).toHaveLength(1)
})

test('the policy leaves events of other machines alone, without a word', async () => {
  const stage = await openStage({
    control: null,
    approvals: { auto: [{ when: { eventSource: 'User' } }] },
    scenario: {
      events: [
        { ...reboot, resources: ['web_1'] },
        { ...reboot, id: 'AAAAAAAA-0000-0000-0000-000000000000', appearsAtSeconds: 1 },
      ],
    },
  })
  await stage.told('ok')
  expect(stage.imds.posts.map(({ eventIds }) => eventIds)).toEqual([['AAAAAAAA-0000-0000-0000-000000000000']])
  expect(stage.events.filter(({ type }) => type.includes('.approval.'))).toHaveLength(1)
})

test('a hold keeps the policy from approving', async () => {
  const stage = await openStage({ approvals: { auto: [{ when: { eventSource: 'User' }, delaySeconds: 2 }] } })
  await stage.send({ body: approval({ command: 'hold' }) })
  await stage.told('held')
  const polled = stage.imds.requests.length
  // Well past the delay: each request is a poll.
  while (stage.imds.requests.length < polled + 15) await sleep(50)
  expect(stage.imds.posts).toEqual([])
})

test('what the policy cannot finish before NotBefore is told', async () => {
  const stage = await openStage({
    control: null,
    approvals: { auto: [{ when: { eventSource: 'User' }, delaySeconds: 1000 }] },
  })
  const told = await stage.told('expired')
  expect([told.type, told.data['via']]).toEqual(['foreshock.approval.refused.v1', 'policy'])
  expect(told.data['detail']).toMatch(/delaySeconds ends at .*Azure starts it by itself/)
  expect(stage.imds.posts).toEqual([])
})
