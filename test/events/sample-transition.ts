import type { EventContext } from '../../src/events/scheduled-event.ts'
import type { Identity } from '../../src/events/identity.ts'
import type { EndTransition, ScheduledEvent, StateTransition } from '../../src/lifecycle/model.ts'
import { digest16 } from '../../src/lifecycle/digest.ts'

export const scaleSetId =
  '/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/Prod/providers/Microsoft.Compute/virtualMachineScaleSets/Web'

export const identity: Identity = {
  vmName: 'web_0',
  vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
  resourceId: `${scaleSetId}/virtualMachines/0`,
  scaleSetId,
  source: null,
  location: 'westeurope',
  zone: '1',
  faultDomain: '0',
  updateDomain: null,
  scaleSet: 'Web',
  tags: { team: 'web' },
}

export const context: EventContext = { prefix: 'foreshock', scope: 'group', identity }

/** The event of the vector in the contract, under an id in upper case. */
export const sampleEvent = (part: Partial<ScheduledEvent> = {}): ScheduledEvent => ({
  eventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
  eventType: 'Reboot',
  eventStatus: 'Scheduled',
  eventSource: 'Platform',
  notBefore: '2016-09-19T18:29:47Z',
  resources: ['BackEnd_IN_0', 'FrontEnd_IN_0'],
  durationInSeconds: -1,
  resourceType: 'VirtualMachine',
  description: 'Host server is undergoing maintenance.',
  ...part,
})

const at = Date.parse('2016-09-19T18:15:00.250Z')

export function stateTransition(part: Partial<StateTransition> = {}): StateTransition {
  const event = part.event ?? sampleEvent()
  return {
    kind: 'state',
    key: event.eventId.toLowerCase(),
    generation: 1,
    event,
    status: 'scheduled',
    digest16: digest16(event),
    repeat: 1,
    changes: [],
    notBefore: event.notBefore,
    incarnation: 7,
    at,
    scheduledObserved: true,
    reappeared: false,
    ...part,
  }
}

export function endTransition(part: Partial<EndTransition> = {}): EndTransition {
  const event = part.event ?? sampleEvent({ eventStatus: 'Started', notBefore: null })
  return {
    kind: 'end',
    key: event.eventId.toLowerCase(),
    generation: 1,
    event,
    notBefore: '2016-09-19T18:29:47Z',
    incarnation: 9,
    at,
    scheduledObserved: true,
    reappeared: false,
    outcome: 'completed',
    evidence: { rule: 'started', d: 1, gapSeconds: 1.25, bootChanged: null },
    scheduledAt: at - 900_000,
    startedAt: null,
    endedAt: at,
    gapSeconds: 1.25,
    ...part,
  }
}
