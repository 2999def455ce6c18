import type { CloudEvent, Json } from '../cloud-event.ts'
import { reporterOf, textOf, type Reporter } from './reporter.ts'
import { topicOf } from './topic.ts'

/** `resultType`, in the words of the schema. An end that nobody saw is neither a success nor a failure. */
const results: Readonly<Record<string, string>> = {
  scheduled: 'Active',
  started: 'Started',
  completed: 'Succeeded',
  cancelled: 'Resolved',
  vanished: 'Resolved',
  relayed: 'Succeeded',
  refused: 'Failed',
  failed: 'Failed',
}

const levels: Readonly<Record<string, string>> = { INFO: 'Informational', WARN: 'Warning', ERROR: 'Error' }

/** Who or what an operation is about where the event is not a scheduled one. */
const operations: Readonly<Record<string, string>> = { approval: 'Approvals', forwarder: 'Forwarder' }

/**
 * An event as Azure's own resource logs look on an event hub, so that what reads those reads this: one record, `records` the only key.
 *
 * Source: https://learn.microsoft.com/azure/azure-monitor/platform/resource-logs-schema
 */
export function azureResourceLog(event: CloudEvent, self: Reporter | null): Json {
  const { data } = event
  const { subject, status } = topicOf(event)
  const eventType = textOf(data['eventType']) ?? textOf(event['azeventtype'])
  const operation = operations[subject]
  return {
    records: [
      {
        time: event.time,
        resourceId: event.source.toUpperCase(),
        operationName: operation === undefined ? `ScheduledEvents/${eventType ?? 'Unknown'}/${status}` : `${operation}/${status}`,
        category: 'ScheduledEvents',
        resultType: results[status] ?? 'Active',
        level: levels[textOf(event['severitytext']) ?? ''] ?? 'Informational',
        location: reporterOf(event, self).location ?? undefined,
        correlationId: textOf(data['eventId']) ?? textOf(event['correlationid']) ?? event.partitionkey,
        properties: { ...data, cloudEventId: event.id },
      },
    ],
  }
}
