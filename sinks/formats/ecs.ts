import type { CloudEvent, Json } from '../cloud-event.ts'
import { reporterOf, textOf, type Reporter } from './reporter.ts'
import { topicOf } from './topic.ts'

const ecsVersion = '8.17.0'

const ended = new Set(['completed', 'cancelled', 'vanished', 'stopping'])

/** What stands in `foreshock.…` beside the fields that the schema knows: ECS leaves proper names to whoever writes them. */
const own = {
  event_id: 'eventId',
  event_type: 'eventType',
  event_status: 'eventStatus',
  event_source: 'eventSource',
  resources: 'resources',
  not_before: 'notBefore',
  duration_seconds: 'durationInSeconds',
  outcome: 'outcome',
  affects_this_vm: 'affectsThisVm',
} as const

/**
 * An event in the Elastic Common Schema, flat: dotted names at the top. What is not known is left out.
 *
 * Source: https://www.elastic.co/docs/reference/ecs/ecs-field-reference
 */
export function ecs(event: CloudEvent, self: Reporter | null): Json {
  const { data } = event
  const { subject, status } = topicOf(event)
  const eventType = textOf(data['eventType']) ?? textOf(event['azeventtype'])
  const reporter = reporterOf(event, self)
  const fields: Record<string, Json | undefined> = {
    '@timestamp': event.time,
    'ecs.version': ecsVersion,
    'event.kind': 'event',
    'event.category': ['host'],
    'event.type': [kindOf(event, status)],
    'event.action': subject === 'scheduledevent' ? `scheduled-event-${(eventType ?? 'unknown').toLowerCase()}` : `${subject}-${status}`,
    'event.id': event.id,
    'event.provider': 'foreshock',
    'event.dataset': `foreshock.${subject}`,
    'event.reason': textOf(data['description']) ?? textOf(data['reason']) ?? undefined,
    'event.severity': Number(event['severitynumber']),
    'log.level': textOf(event['severitytext'])?.toLowerCase(),
    'host.name': reporter.vmName ?? undefined,
    'cloud.provider': 'azure',
    'cloud.instance.id': reporter.vmId ?? undefined,
    'cloud.account.id': subscriptionOf(event.source) ?? subscriptionOf(reporter.resourceId),
    'cloud.region': reporter.location ?? undefined,
    'cloud.availability_zone': reporter.zone ?? undefined,
    'foreshock.type': event.type,
    'foreshock.source': event.source,
  }
  for (const [name, field] of Object.entries(own)) fields[`foreshock.${name}`] = data[field] ?? undefined
  return fields
}

/** A scheduled event that says what changed is a change; the first word of one is information. */
function kindOf({ data }: CloudEvent, status: string): 'info' | 'change' | 'start' | 'end' {
  if (status === 'started') return 'start'
  if (ended.has(status)) return 'end'
  return Array.isArray(data['changes']) ? 'change' : 'info'
}

function subscriptionOf(id: string | null): string | undefined {
  return /^\/subscriptions\/([^/]+)/i.exec(id ?? '')?.[1]?.toLowerCase()
}
