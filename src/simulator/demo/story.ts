import type { CloudEvent, Json } from '../../../sinks/cloud-event.ts'
import { span } from '../../span.ts'

/** What one event says, in a line for people. Pure; `now` in milliseconds since the epoch. */
export function tell(event: CloudEvent, now: number): string {
  const [, family = '', state = ''] = /\.(scheduledevent|forwarder|approval)\.([a-z0-9-]+)\.v1$/.exec(event.type) ?? []
  if (family === 'approval')
    return `approval ${state} (${text(event.data['code'])}), asked for by ${text(event.data['requestedBy'])}: ${text(event.data['reason'])}`
  if (family !== 'scheduledevent') return `${family} ${state}`
  const { eventType, eventSource, resources, notBefore, durationInSeconds, evidence, gapSeconds } = event.data
  const what = `${text(eventType)} of ${Array.isArray(resources) ? resources.join(', ') : 'nobody'}`
  switch (state) {
    case 'scheduled':
      return `${what} scheduled by ${text(eventSource)}${inTime(notBefore, now)}${lasting(durationInSeconds)}`
    case 'started':
      return `${what} started`
    default:
      return `${what} ${state}${because(evidence)}${away(gapSeconds)}`
  }
}

const text = (value: Json | undefined): string => (typeof value === 'string' ? value : 'somebody')

function inTime(notBefore: Json | undefined, now: number): string {
  return typeof notBefore === 'string' ? `, not before ${span(Math.max(0, Date.parse(notBefore) - now))} from now` : ''
}

function lasting(seconds: Json | undefined): string {
  return typeof seconds === 'number' && seconds >= 0 ? `, lasting ${seconds} s` : ''
}

function because(evidence: Json | undefined): string {
  if (typeof evidence !== 'object' || evidence === null || Array.isArray(evidence)) return ''
  return ` (evidence: rule ${String(Reflect.get(evidence, 'rule'))}${Reflect.get(evidence, 'bootChanged') === true ? ', the machine has booted since' : ''})`
}

function away(gapSeconds: Json | undefined): string {
  return typeof gapSeconds === 'number' && gapSeconds >= 1.5 ? `, after ${gapSeconds.toFixed(1)} s during which nobody looked` : ''
}
