import type { CloudEvent } from '../cloud-event.ts'

/** What an event tells, from its type alone: `{prefix}.scheduledevent.started.v1` is `scheduledevent`, `started`. */
export interface Topic {
  /** `scheduledevent`, `approval`, `forwarder`. */
  readonly subject: string
  /** `scheduled`, `started`, `completed`, `cancelled`, `vanished`; `relayed` …; `heartbeat` … */
  readonly status: string
}

/** The prefix may itself have dots; the last three parts are ours. */
export function topicOf(event: CloudEvent): Topic {
  const [subject = '', status = ''] = event.type.split('.').slice(-3)
  return { subject, status }
}
