import { describe, expect, it } from 'vitest'
import { approvalSeverity, forwarderSeverity, severityOfEvent } from '../../src/events/severity.ts'

describe('severity', () => {
  it.each([
    ['scheduled', 'Freeze', 'INFO', 9],
    ['scheduled', 'Reboot', 'WARN', 13],
    ['scheduled', 'Redeploy', 'WARN', 13],
    ['scheduled', 'Terminate', 'WARN', 13],
    ['scheduled', 'RebalanceRecommendation', 'WARN', 13],
    ['scheduled', 'Preempt', 'ERROR', 17],
    ['scheduled', 'preempt', 'ERROR', 17],
    ['started', 'Freeze', 'WARN', 13],
    ['started', 'Reboot', 'ERROR', 17],
    ['started', 'constructor', 'ERROR', 17],
    ['completed', 'Preempt', 'INFO', 9],
    ['cancelled', 'Preempt', 'INFO', 9],
    ['vanished', 'Freeze', 'WARN', 13],
    ['acknowledged', 'Freeze', 'WARN', 13],
  ])('of %s %s is %s', (status, eventType, text, number) => {
    expect(severityOfEvent(status, eventType)).toEqual({ text, number })
  })

  it('of an event about the forwarder or an approval stands in a table', () => {
    const numbers = Object.entries({ ...forwarderSeverity, ...approvalSeverity }).map(
      ([kind, { text, number }]) => `${kind} ${text} ${number}`,
    )
    expect(numbers).toEqual([
      'started INFO 9',
      'stopping INFO 9',
      'heartbeat INFO 9',
      'imds-unreachable ERROR 17',
      'imds-recovered INFO 9',
      'relayed INFO 9',
      'refused WARN 13',
      'failed ERROR 17',
    ])
  })
})
