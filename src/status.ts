import type { Readiness } from './admin/server.ts'
import type { ApprovalsStatus } from './approvals/approvals.ts'
import type { Identity } from './events/identity.ts'
import type { ImdsHealth } from './imds/health.ts'
import type { RememberedState } from './lifecycle/model.ts'
import type { SinkHealth } from './outbox/dispatcher.ts'

/** One poll that is lost says nothing: IMDS answers 429 now and then. */
const lostPolls = 3
/** A sink that fails for longer is a reason not to be ready. */
const sinkBoundMs = 5 * 60_000

export interface SinkStatus {
  readonly name: string
  readonly type: string
  readonly health: SinkHealth
  readonly pending: number
  readonly dead: number
  /** Milliseconds since the epoch. */
  readonly oldestPendingAt: number | null
}

/** The running forwarder, JSON-ready and without secrets: what /status answers. */
export interface ForwarderStatus {
  readonly version: string
  readonly startedAt: string
  readonly uptimeSeconds: number
  readonly ready: boolean
  readonly reasons: readonly string[]
  readonly vm: { readonly name: string | null; readonly vmId: string | null; readonly resourceId: string | null }
  readonly imds: {
    readonly endpoint: string
    readonly apiVersion: string
    readonly health: ImdsHealth
    readonly lastGoodPollAt: string | null
    readonly incarnation: number | string | null
  }
  readonly events: readonly {
    readonly eventId: string
    readonly eventType: string
    readonly eventStatus: string
    readonly notBefore: string | null
    readonly resources: readonly string[]
  }[]
  readonly sinks: readonly SinkStatus[]
  readonly state: { readonly path: string; readonly setAside: string | null; readonly writable: boolean }
  /** null where nothing is approved. */
  readonly approvals: ApprovalsStatus | null
}

export interface StatusParts {
  readonly version: string
  readonly startedAt: number
  readonly now: number
  readonly identity: Identity | null
  readonly endpoint: string
  readonly apiVersion: string
  readonly imds: ImdsHealth
  readonly remembered: RememberedState
  readonly sinks: readonly SinkStatus[]
  readonly statePath: string
  readonly setAside: string | null
  /** Why the last commit failed; null where it did not. */
  readonly storeProblem: string | null
  readonly approvals: ApprovalsStatus | null
}

export function readinessOf({ imds, sinks, storeProblem, now }: Pick<StatusParts, 'imds' | 'sinks' | 'storeProblem' | 'now'>): Readiness {
  const reasons: string[] = []
  if (imds.state === 'unreachable' || (imds.state === 'failing' && imds.failures >= lostPolls))
    reasons.push(`IMDS gives no document: ${imds.detail}`)
  if (storeProblem !== null) reasons.push(`the state file cannot be written: ${storeProblem}`)
  for (const { name, health } of sinks) {
    if (health.state === 'halted') reasons.push(`sink ${name} is halted: ${health.reason}`)
    else if (health.state !== 'ok' && now - health.since > sinkBoundMs) reasons.push(`sink ${name} fails: ${health.detail}`)
  }
  return { ready: reasons.length === 0, reasons }
}

export function statusOf(parts: StatusParts): ForwarderStatus {
  const { version, startedAt, now, identity, endpoint, apiVersion, imds, remembered, sinks } = parts
  return {
    version,
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.round((now - startedAt) / 1000),
    ...readinessOf(parts),
    vm: { name: identity?.vmName ?? null, vmId: identity?.vmId ?? null, resourceId: identity?.resourceId ?? null },
    imds: {
      endpoint,
      apiVersion,
      health: imds,
      lastGoodPollAt: remembered.lastGoodPollAt === null ? null : new Date(remembered.lastGoodPollAt).toISOString(),
      incarnation: remembered.incarnation,
    },
    events: Object.values(remembered.live).map(({ event, lastNotBefore }) => ({
      eventId: event.eventId,
      eventType: event.eventType,
      eventStatus: event.eventStatus,
      notBefore: lastNotBefore,
      resources: event.resources,
    })),
    sinks,
    state: { path: parts.statePath, setAside: parts.setAside, writable: parts.storeProblem === null },
    approvals: parts.approvals,
  }
}
