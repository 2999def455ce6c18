import type { CloudEvent } from '../../sinks/cloud-event.ts'
import type { DeliveryOutcome, SinkLog } from '../../sinks/contract.ts'
import type { OutgoingEvent } from '../../src/outbox/commit.ts'

export interface LogLine {
  readonly level: keyof SinkLog
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

export function captureLog(): SinkLog & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: keyof SinkLog) => (fields: object, message: string) => void lines.push({ level, fields: { ...fields }, message })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

export function eventOf(id: string, lane = id): CloudEvent {
  return {
    specversion: '1.0',
    id,
    source: '/subscriptions/s/virtualmachinescalesets/web',
    type: 'foreshock.scheduledevent.scheduled.v1',
    subject: `/scheduledevents/${lane}`,
    time: '2026-01-01T00:00:00Z',
    datacontenttype: 'application/json',
    dataschema: 'https://example.org/schema.json',
    partitionkey: lane,
    data: { eventId: lane },
  }
}

const dayMs = 24 * 60 * 60 * 1000

/** For one sink or several, with a day to go where nothing else is said. */
export function outgoing(
  id: string,
  {
    lane = id,
    sinks = ['a'],
    priority = 0,
    expiresAt = Date.now() + dayMs,
  }: {
    lane?: string
    sinks?: readonly string[]
    priority?: 0 | 1
    expiresAt?: number
  } = {},
): OutgoingEvent {
  return { event: eventOf(id, lane), priority, targets: sinks.map((sink) => ({ sink, expiresAt })) }
}

export const transient = {
  status: 'retry',
  because: 'transient',
  code: 'http_503',
  detail: 'down for now',
} as const satisfies DeliveryOutcome
export const rejected = { status: 'rejected', code: 'http_400', detail: 'not like this' } as const satisfies DeliveryOutcome
