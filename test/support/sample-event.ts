import type { CloudEvent, Json } from '../../sinks/cloud-event.ts'

/** A valid event of our own making, with every attribute type and with text that encoders like to break; frozen to the last leaf. */
export function sampleEvent(number: number, overrides: Partial<CloudEvent> = {}): CloudEvent {
  const eventId = `C7061BAC-AFDC-4513-B24B-AA5F13A1${String(number).padStart(4, '0')}`
  const source = '/subscriptions/0c9e/resourcegroups/ops/providers/microsoft.compute/virtualmachinescalesets/web'
  return deepFreeze({
    specversion: '1.0',
    id: `${eventId}:scheduled:1d105773e80d3ccc`,
    source,
    type: 'foreshock.scheduledevent.scheduled.v1',
    subject: `${source}/scheduledevents/${eventId.toLowerCase()}`,
    time: '2026-03-01T12:00:00.250Z',
    datacontenttype: 'application/json',
    dataschema: 'https://schemas.foreshock.example/scheduledevent.v1.json',
    partitionkey: eventId,
    azincarnation: '17',
    severitynumber: 13,
    severitytext: 'WARN',
    extbool: false,
    exttext: 'Euro € 😀 a"b 100% c\\d é',
    data: { eventId, eventType: 'Reboot', resources: ['web_0', 'Größe € 😀 "q" 100%'], notBefore: null, durationInSeconds: -1 },
    ...overrides,
  })
}

/** An event whose data takes 60 KiB, just under what a whole event may be. */
export function largeEvent(number: number): CloudEvent {
  return sampleEvent(number, { data: { description: 'x'.repeat(60 * 1024) } })
}

function deepFreeze(event: CloudEvent): CloudEvent {
  const freeze = (value: Json | CloudEvent | undefined): void => {
    if (typeof value !== 'object' || value === null) return
    Object.freeze(value)
    for (const part of Object.values(value)) freeze(part)
  }
  freeze(event)
  return event
}
