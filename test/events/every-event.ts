import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { buildForwarderEvent } from '../../src/events/forwarder-event.ts'
import { buildScheduledEvent } from '../../src/events/scheduled-event.ts'
import { context, endTransition, identity, sampleEvent, stateTransition } from './sample-transition.ts'

const started = sampleEvent({ eventStatus: 'Started', notBefore: null })

const transitions = {
  scheduled: stateTransition(),
  rescheduled: stateTransition({ changes: [{ field: 'notBefore', from: '2016-09-19T18:29:47Z', to: '2016-09-19T19:00:00Z' }] }),
  started: stateTransition({ event: started, status: 'started', notBefore: '2016-09-19T18:29:47Z' }),
  completed: endTransition(),
  cancelled: endTransition({ outcome: 'cancelled', evidence: { rule: 'A', d: 1, gapSeconds: 1.25, bootChanged: false } }),
  vanished: endTransition({
    outcome: 'vanished',
    evidence: { rule: 'D', d: null, gapSeconds: 86_400, bootChanged: null },
    gapSeconds: 86_400,
  }),
  preempt: stateTransition({ event: sampleEvent({ eventType: 'Preempt', eventSource: 'Platform', resources: ['web_0'] }) }),
  freeze: stateTransition({
    event: sampleEvent({ eventType: 'Freeze', durationInSeconds: 5, description: 'Say "hello", <b>100%</b> \\o/ \n😀' }),
  }),
}

const status = {
  version: '1.2.3',
  startedAt: Date.parse('2016-09-19T18:00:00Z'),
  state: { live: {}, incarnation: 7 },
  lastGoodPollAt: Date.parse('2016-09-19T18:15:00Z'),
  failures: 0,
  lastError: null,
  outbox: { siem: 2 },
}

/** One event of each kind by name: every transition, in scope `vm` too, and two that are about the forwarder. */
export function everyEvent(): [name: string, event: CloudEvent][] {
  const scheduled = Object.entries(transitions).map(([name, transition]): [string, CloudEvent] => [
    name,
    buildScheduledEvent(transition, context),
  ])
  const at = Date.parse('2016-09-19T18:15:01Z')
  return [
    ...scheduled,
    [
      'scheduled-of-vm',
      buildScheduledEvent(transitions.scheduled, { ...context, scope: 'vm', identity: { ...identity, vmName: 'FrontEnd_IN_0' } }),
    ],
    ['heartbeat', buildForwarderEvent('heartbeat', at, status, context)],
    ['imds-unreachable', buildForwarderEvent('imds-unreachable', at, { ...status, failures: 10, lastError: 'timeout' }, context)],
  ]
}
