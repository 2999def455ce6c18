import type { CloudEvent, Json } from '../cloud-event.ts'
import { topicOf } from '../formats/topic.ts'

/**
 * An event as one row of the table `Foreshock_CL`. The columns are those of `config/azure/data-collection-rule.json` and of
 * `config/azure/table.json`; a value that an event does not have is null.
 */
export function recordOf(event: CloudEvent): Record<string, Json> {
  const { data } = event
  const field = (name: string): Json => data[name] ?? null
  const attribute = (name: string): Json => {
    const value = event[name]
    return value === undefined ? null : typeof value === 'object' ? null : value
  }
  const { subject, status } = topicOf(event)
  return {
    TimeGenerated: event.time,
    CloudEventId: event.id,
    CloudEventType: event.type,
    CloudEventSource: event.source,
    CloudEventSubject: event.subject,
    Topic: subject,
    Status: status,
    Severity: attribute('severitytext'),
    SeverityNumber: attribute('severitynumber'),
    Observer: attribute('azobserver'),
    Incarnation: attribute('azincarnation'),
    EventId: field('eventId'),
    EventType: field('eventType'),
    EventStatus: field('eventStatus'),
    EventSource: field('eventSource'),
    Resources: field('resources'),
    NotBefore: field('notBefore'),
    DurationInSeconds: field('durationInSeconds'),
    Description: field('description'),
    AffectsThisVm: field('affectsThisVm'),
    Outcome: field('outcome'),
    ScheduledAt: field('scheduledAt'),
    StartedAt: field('startedAt'),
    EndedAt: field('endedAt'),
    Data: { ...data },
  }
}
