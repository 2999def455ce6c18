import type { CloudEvent } from '../sinks/cloud-event.ts'

/** About what a scheduled event is on the wire. */
export function eventOf(number: number): CloudEvent {
  const eventId = `c7061bac-afdc-4513-b24b-${String(number).padStart(12, '0')}`
  const source = '/subscriptions/0/resourcegroups/g/providers/microsoft.compute/virtualmachines/web_0'
  return {
    specversion: '1.0',
    id: `${eventId}:scheduled:1d105773e80d3ccc`,
    source,
    type: 'foreshock.scheduledevent.scheduled.v1',
    subject: `${source}/scheduledevents/${eventId}`,
    time: '2030-01-01T00:00:00.000Z',
    datacontenttype: 'application/json',
    dataschema: 'https://schemas.example/scheduledevent.v1.json',
    partitionkey: eventId,
    severitynumber: 13,
    severitytext: 'WARN',
    data: { eventId, eventType: 'Reboot', eventStatus: 'Scheduled', description: 'x'.repeat(250) },
  }
}

/** Each round moves NotBefore, which is one `scheduled` event. */
export function document(round: number): unknown {
  return {
    DocumentIncarnation: round + 2,
    Events: [
      {
        EventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
        EventStatus: 'Scheduled',
        EventType: 'Reboot',
        ResourceType: 'VirtualMachine',
        Resources: ['web_0'],
        NotBefore: new Date(Date.UTC(2030, 0, 1) + round * 1000).toUTCString(),
        Description: 'Host server is undergoing maintenance.',
        EventSource: 'Platform',
        DurationInSeconds: -1,
      },
    ],
  }
}
