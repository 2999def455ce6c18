import type { CloudEvent, Json } from '../cloud-event.ts'
import { reporterOf, type Reporter } from './reporter.ts'

/**
 * An event for Splunk's HTTP Event Collector, the CloudEvent inside. `time` is in seconds since the epoch, with milliseconds.
 *
 * Source: https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector
 */
export function splunkHec(event: CloudEvent, self: Reporter | null): Json {
  return {
    time: Date.parse(event.time) / 1000,
    host: reporterOf(event, self).vmName ?? undefined,
    source: event.source,
    sourcetype: 'foreshock:cloudevent',
    event: { ...event },
  }
}
