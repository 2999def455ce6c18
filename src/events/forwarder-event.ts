import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { buildEvent } from './build.ts'
import { capUtf8 } from './cap-utf8.ts'
import { fitData } from './fit-data.ts'
import { type Identity, observerOf, sourceOf } from './identity.ts'
import { forwarderId } from './ids.ts'
import type { EventContext } from './scheduled-event.ts'
import type { ForwarderData } from './schemas.ts'
import { type ForwarderKind, forwarderSeverity } from './severity.ts'
import { vmData } from './vm-data.ts'
import { toIso } from '../lifecycle/instant.ts'
import type { RememberedState } from '../lifecycle/model.ts'

const maxListed = 50
const maxErrorBytes = 1024

/** What is given up until the event fits into 64 KiB. */
const cuts: readonly ((data: ForwarderData) => ForwarderData)[] = [
  (data) => ({ ...data, liveEvents: data.liveEvents.slice(0, 10) }),
  (data) => ({ ...data, vm: { ...data.vm, tags: {} } }),
]

/** How the forwarder stands at a moment. Times are milliseconds since the epoch. */
export interface ForwarderStatus {
  readonly version: string
  readonly startedAt: number
  readonly state: Pick<RememberedState, 'live' | 'incarnation'>
  /** null before the first; on `imds-recovered` the one before the outage. */
  readonly lastGoodPollAt: number | null
  /** Failed polls in a row. */
  readonly failures: number
  /** One line, without secrets. */
  readonly lastError: string | null
  /** How many events wait, by name of the sink. */
  readonly outbox: Readonly<Record<string, number>>
}

/** An event about the forwarder itself. `at` is milliseconds since the epoch. Throws `event_invalid`. */
export function buildForwarderEvent(kind: ForwarderKind, at: number, status: ForwarderStatus, context: EventContext): CloudEvent {
  const { prefix, scope, identity } = context
  const source = sourceOf(identity, scope)
  const machine = machineOf(identity)
  const severity = forwarderSeverity[kind]
  return buildEvent({
    id: forwarderId(kind, toIso(at), machine),
    source,
    type: `${prefix}.forwarder.${kind}.v1`,
    subject: `${source}/forwarders/${machine}`,
    at,
    schema: 'forwarder',
    partitionkey: machine,
    extensions: { azobserver: observerOf(identity), severitytext: severity.text, severitynumber: severity.number },
    data: fitData(forwarderData(at, status, identity), cuts),
  })
}

function forwarderData(at: number, status: ForwarderStatus, identity: Identity): ForwarderData {
  const live = Object.values(status.state.live)
  return {
    version: status.version,
    vm: vmData(identity),
    uptimeSeconds: secondsBetween(status.startedAt, at),
    lastGoodPollAt: status.lastGoodPollAt === null ? null : toIso(status.lastGoodPollAt),
    downSeconds: status.lastGoodPollAt === null ? null : secondsBetween(status.lastGoodPollAt, at),
    failures: status.failures,
    lastError: status.lastError === null ? null : capUtf8(status.lastError, maxErrorBytes),
    incarnation: status.state.incarnation,
    liveEvents: live.slice(0, maxListed).map(({ event, lastNotBefore }) => ({
      eventId: event.eventId,
      eventType: event.eventType,
      eventStatus: event.eventStatus,
      notBefore: lastNotBefore,
    })),
    liveEventsTotal: live.length,
    outbox: { ...status.outbox },
  }
}

/** Whatever tells this machine from its neighbours. */
const machineOf = ({ vmId, vmName }: Identity): string => vmId ?? vmName ?? 'unknown'

const secondsBetween = (from: number, to: number): number => Math.max(0, to - from) / 1000
