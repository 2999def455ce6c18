import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../../src/simulator/imds/scenario-file.ts'
import type { Scenario } from '../../../src/simulator/imds/scenario.ts'
import { timelineAt, type Approval, type Moment } from '../../../src/simulator/imds/timeline.ts'
import { scenarioOf } from './play.ts'

const words = ({ events }: Moment): string[] =>
  events.map(({ event, status, notBeforeSeconds }) => {
    const when = status === 'Scheduled' ? ` for ${notBeforeSeconds}` : ''
    return `${event.type} ${event.resources.join('+')} ${status}${when}`
  })

/** Every document of a scenario: when it appears, its incarnation, its events. */
function story(scenario: Scenario, approvals: readonly Approval[] = []): string[] {
  const told: string[] = []
  let last = ''
  for (let at: number | null = 0; at !== null;) {
    const moment: Moment = timelineAt(
      scenario,
      at,
      approvals.filter(({ atSeconds }) => atSeconds <= Number(at)),
    )
    const document = `#${moment.incarnation} ${words(moment).join(', ')}`.trimEnd()
    if (document !== last) told.push(`${at} ${document}`)
    last = document
    const times: number[] = [moment.nextSeconds ?? Number.POSITIVE_INFINITY, ...approvals.map(({ atSeconds }) => atSeconds)]
    const next: number = Math.min(...times.filter((time) => time > Number(at)))
    at = Number.isFinite(next) ? next : null
    if (at === null && !moment.ended) told.push('it never ends')
  }
  return told
}

const ends = (keys: object, seconds: number): boolean => timelineAt(scenarioOf(keys), seconds, []).ended

const stories: Record<string, string[]> = {
  'live-migration': ['0 #1', '60 #2 Freeze web_0 Scheduled for 960', '960 #3 Freeze web_0 Started', '1440 #4'],
  'host-maintenance': [
    '0 #1',
    '60 #2 Reboot app_0+app_1 Scheduled for 960',
    '960 #3 Reboot app_0+app_1 Started',
    '1560 #4',
    '1800 #5 Reboot app_2 Scheduled for 2700',
    '2700 #6 Reboot app_2 Started',
    '3300 #7',
  ],
  'user-reboot': ['0 #1', '60 #2 Reboot web_0 Scheduled for 960', '960 #3 Reboot web_0 Started', '1260 #4'],
  redeploy: ['0 #1', '60 #2 Redeploy web_0 Scheduled for 660', '660 #3 Redeploy web_0 Started', '1080 #4'],
  'spot-preempt': ['0 #1', '60 #2 Preempt spot_3 Scheduled for 90', '90 #3 Preempt spot_3 Started', '150 #4'],
  'scale-in': [
    '0 #1',
    '60 #2 Terminate batch_1 Scheduled for 360, Terminate batch_4 Scheduled for 360, Terminate batch_7 Scheduled for 360',
    '360 #3 Terminate batch_1 Started, Terminate batch_4 Started, Terminate batch_7 Started',
    '480 #4',
  ],
  cancelled: ['0 #1', '60 #2 Freeze web_0 Scheduled for 960', '420 #3'],
  'hardware-failure': ['0 #1', '60 #2 Reboot web_0 Started', '660 #3'],
  reschedule: [
    '0 #1',
    '60 #2 Reboot web_0 Scheduled for 960',
    '360 #3 Reboot web_0 Scheduled for 2760',
    '960 #4 Reboot web_0 Scheduled for 1560',
    '1560 #5 Reboot web_0 Started',
    '2040 #6',
  ],
  'incarnation-reset': [
    '0 #213',
    '60 #214 Freeze web_0 Scheduled for 960',
    '960 #215 Freeze web_0 Started',
    '1260 #216',
    '1800 #1 Freeze web_0 Scheduled for 2700',
    '2700 #2 Freeze web_0 Started',
    '3000 #3',
  ],
  flaky: ['0 #1', '60 #2 Reboot web_0 Scheduled for 960', '960 #3 Reboot web_0 Started', '1560 #4'],
}

describe('the ready scenario', () => {
  it.for(Object.entries(stories))('%s tells the story of its name', async ([name, expected]) => {
    expect(story(await loadScenario(name))).toEqual(expected)
  })

  it('user-reboot starts soon after its approval', async () => {
    const scenario = await loadScenario('user-reboot')
    const approvals = [{ eventId: scenario.events[0]?.id ?? '', atSeconds: 100 }]
    expect(story(scenario, approvals)).toEqual(['0 #1', '60 #2 Reboot web_0 Scheduled for 960', '110 #3 Reboot web_0 Started', '410 #4'])
  })

  it('scale-in proceeds only once all three deletions are approved', async () => {
    const scenario = await loadScenario('scale-in')
    const approvals = scenario.events.map(({ id }, index) => ({ eventId: id.toLowerCase(), atSeconds: 70 + index * 50 }))
    expect(story(scenario, approvals.slice(0, 2)).map((line) => line.split(' ', 1)[0])).toEqual(['0', '60', '360', '480'])
    expect(story(scenario, approvals).map((line) => line.split(' ', 1)[0])).toEqual(['0', '60', '180', '300'])
  })
})

describe('the timeline', () => {
  const freeze = { type: 'Freeze', resources: ['a'], noticeSeconds: 100, startedForSeconds: 50 }

  it('counts several changes of one instant as one, and what is there from the beginning as none', () => {
    const scenario = scenarioOf({ incarnation: 0, events: [freeze, { ...freeze, type: 'Reboot', noticeSeconds: 150 }] })
    expect(story(scenario)).toEqual([
      '0 #0 Freeze a Scheduled for 100, Reboot a Scheduled for 150',
      '100 #1 Freeze a Started, Reboot a Scheduled for 150',
      '150 #2 Reboot a Started',
      '200 #3',
    ])
  })

  it('does not raise the incarnation for an approval, and NotBefore stays the latest moment', () => {
    const scenario = scenarioOf({ events: [{ ...freeze, id: 'x', approvalDelaySeconds: 30 }] })
    const at = (seconds: number) => timelineAt(scenario, seconds, [{ eventId: 'X', atSeconds: 80 }])
    expect(at(90)).toMatchObject({ incarnation: 1, events: [{ status: 'Scheduled', notBeforeSeconds: 100, approved: true }] })
    expect(at(100)).toMatchObject({ incarnation: 2, events: [{ status: 'Started' }] })
  })

  it('lets an approval win over a cancellation that comes after the start', () => {
    const scenario = scenarioOf({ events: [{ ...freeze, id: 'x', cancelAfterSeconds: 60 }] })
    expect(story(scenario)).toEqual(['0 #1 Freeze a Scheduled for 100', '60 #2'])
    expect(story(scenario, [{ eventId: 'x', atSeconds: 20 }])).toEqual([
      '0 #1 Freeze a Scheduled for 100',
      '30 #2 Freeze a Started',
      '80 #3',
    ])
  })

  it('ignores an approval of an event that has not appeared yet', () => {
    const scenario = scenarioOf({ events: [{ ...freeze, id: 'x', appearsAtSeconds: 50 }] })
    expect(story(scenario, [{ eventId: 'x', atSeconds: 20 }])).toContain('150 #3 Freeze a Started')
  })

  it('releases the other deletions when the one that was missing is cancelled', () => {
    const terminate = { type: 'Terminate', resources: ['a'], noticeSeconds: 300 }
    const scenario = scenarioOf({
      events: [
        { ...terminate, id: 'x' },
        { ...terminate, resources: ['b'], cancelAfterSeconds: 200 },
      ],
    })
    expect(story(scenario, [{ eventId: 'x', atSeconds: 20 }])).toEqual([
      '0 #1 Terminate a Scheduled for 300, Terminate b Scheduled for 300',
      '200 #2 Terminate a Scheduled for 300',
      '210 #3 Terminate a Started',
      '510 #4',
    ])
  })

  it('does not let deletions with another NotBefore wait for each other', () => {
    const terminate = { type: 'Terminate', resources: ['a'], noticeSeconds: 300 }
    const scenario = scenarioOf({
      events: [
        { ...terminate, id: 'x' },
        { ...terminate, noticeSeconds: 301 },
      ],
    })
    expect(story(scenario, [{ eventId: 'x', atSeconds: 20 }])).toContain('30 #2 Terminate a Started, Terminate a Scheduled for 301')
  })

  it('ends with its last part, whatever that is, or when the scenario says so', () => {
    expect([ends({ events: [] }, 0), ends({ events: [], restarts: [{ atSeconds: 9 }] }, 8)]).toEqual([true, false])
    const fault = { kind: 'empty', atSeconds: 5, forSeconds: 5 }
    expect([ends({ events: [], faults: [fault] }, 9.9), ends({ events: [], faults: [fault] }, 10)]).toEqual([false, true])
    const frames = [
      { atSeconds: 0, body: '' },
      { atSeconds: 3, body: '' },
    ]
    expect([ends({ documents: frames }, 2.9), ends({ documents: frames }, 3)]).toEqual([false, true])
    expect([ends({ events: [freeze], endsAtSeconds: 20 }, 19), ends({ events: [freeze], endsAtSeconds: 20 }, 20)]).toEqual([false, true])
  })

  it('changes its incarnation exactly when its events change, in any scenario and with any approvals', () => {
    const seconds = fc.integer({ min: 0, max: 200 })
    const event = fc.record({
      type: fc.constantFrom('Freeze', 'Terminate'),
      resources: fc.constant(['a']),
      appearsAtSeconds: seconds,
      noticeSeconds: seconds,
      startedForSeconds: fc.integer({ min: 1, max: 200 }),
      approvalDelaySeconds: seconds,
    })
    const approval = fc.record({ index: fc.integer({ min: 0, max: 3 }), atSeconds: seconds })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 4 }), fc.array(approval, { maxLength: 4 }), (events, approved) => {
        const scenario = scenarioOf({ events })
        const approvals = approved.map(({ index, atSeconds }) => ({ eventId: scenario.events[index]?.id ?? 'none', atSeconds }))
        let before = timelineAt(scenario, 0, approvals)
        for (let at = 1; at <= 620; at += 1) {
          const moment = timelineAt(scenario, at, approvals)
          const changed = words(moment).join() !== words(before).join()
          expect(moment.incarnation - before.incarnation).toBe(changed ? 1 : 0)
          before = moment
        }
        expect(before).toMatchObject({ events: [], ended: true, nextSeconds: null })
      }),
      { numRuns: 30 },
    )
  })
})
