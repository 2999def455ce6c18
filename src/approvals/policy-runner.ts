import type { SinkLog } from '../../sinks/contract.ts'
import { digest16 } from '../lifecycle/digest.ts'
import { type Identity, type Scope, sourceOf } from '../events/identity.ts'
import { transitionId } from '../events/ids.ts'
import type { LiveEvent, RememberedState } from '../lifecycle/model.ts'
import { isFirstResource, namesThisVm } from '../lifecycle/names.ts'
import { statusName } from '../lifecycle/status.ts'
import type { Store } from '../outbox/store.ts'
import type { Approver } from './approver.ts'
import type { GateRules } from './gate.ts'
import { decide, type PolicyRule } from './policy.ts'
import { mayPass } from './reason.ts'
import { unreadable, type ApprovalRequest } from './request.ts'

/** How long an approval that failed for a reason that may pass rests. */
const againMs = 5000

export interface PolicyRunnerOptions {
  readonly rules: readonly PolicyRule[]
  readonly gate: GateRules
  readonly approver: Approver
  readonly store: Pick<Store, 'findApprovals' | 'holds' | 'wasDelivered'>
  readonly state: () => RememberedState
  readonly identity: () => Identity | null
  readonly scope: Scope
  readonly now: () => number
  readonly log: SinkLog
  /** What fails for a reason that is none of the gate's. */
  readonly onFailure: (error: unknown) => void
}

export interface PolicyRunner {
  /** Looks at every event that is live, after each document. Cheap where there are none. */
  look(): void
  /** Resolves when nothing is under way. Idempotent. */
  stop(): Promise<void>
}

/**
 * Asks for what the policy says, once for each state of an event. An event that is none of this VM's, or that somebody holds, is passed over in
 * silence: on a hundred VMs that see it, ninety-nine would otherwise tell that they did nothing.
 */
export function createPolicyRunner(options: PolicyRunnerOptions): PolicyRunner {
  const { rules, gate, approver, store, state, identity, scope, now, log } = options
  const stopping = new AbortController()
  const underWay = new Map<string, Promise<void>>()
  const notBefore = new Map<string, number>()
  /** What was decided, so that the store is asked once a state. */
  let finished = new Set<string>()

  const look = (): void => {
    const { live } = state()
    const who = identity()
    if (who === null || rules.length === 0 || stopping.signal.aborted) return
    const current = new Set<string>()
    for (const [key, event] of Object.entries(live)) {
      const delivery = `${key}:g${event.generation}:${digest16(event.event)}`
      current.add(delivery)
      if (!finished.has(delivery)) consider(key, event, delivery, who)
    }
    finished = finished.intersection(current)
    for (const known of notBefore.keys()) if (!current.has(known)) notBefore.delete(known)
  }

  const consider = (key: string, live: LiveEvent, delivery: string, who: Identity): void => {
    if (underWay.has(delivery) || now() < (notBefore.get(delivery) ?? 0)) return
    const decision = decide(rules, { live, vmName: who.vmName, now: now(), delivered: (sink) => delivered(sink, key, live, who) })
    if (decision.kind === 'none' || decision.kind === 'wait' || !isOurs(live, who)) return
    if (store.holds().some(({ eventKey }) => eventKey === key)) return
    if (store.findApprovals(`policy:${delivery}`).some((row) => row.state === 'final')) {
      finished.add(delivery)
      return
    }
    const request = requestOf(live, decision.kind === 'approve' ? decision.reason : `approvals.auto[${decision.rule}]`)
    if (decision.kind === 'late') {
      approver.refuse({ request, delivery }, { code: 'expired', detail: decision.detail })
      finished.add(delivery)
      return
    }
    const asked = ask(request, delivery, live)
      .catch((error: unknown) => {
        if (stopping.signal.aborted) return
        notBefore.set(delivery, now() + againMs)
        options.onFailure(error)
      })
      .finally(() => underWay.delete(delivery))
    underWay.set(delivery, asked)
  }

  const ask = async (request: ApprovalRequest, delivery: string, live: LiveEvent): Promise<void> => {
    const deadline = live.lastNotBefore === null ? Number.POSITIVE_INFINITY : Date.parse(live.lastNotBefore)
    const last = now() + againMs >= deadline
    const decided = await approver.decide({ request, delivery, last, signal: stopping.signal })
    if (decided.kind === 'unread' || (!last && decided.codes.some(mayPass))) {
      log.debug({ eventId: live.event.eventId, detail: decided.detail }, 'the policy tries again')
      notBefore.set(delivery, now() + againMs)
    } else {
      finished.add(delivery)
    }
  }

  const isOurs = ({ event: { resources, eventType } }: LiveEvent, { vmName }: Identity): boolean => {
    if (gate.leaderOnly && isFirstResource(resources, vmName) !== true) return false
    return (gate.events === 'any' && eventType.toLowerCase() !== 'terminate') || namesThisVm(resources, vmName) === true
  }

  const delivered = (sink: string, key: string, { generation, event, reported }: LiveEvent, who: Identity): boolean => {
    const status = statusName(event.eventStatus)
    const digest = digest16(event)
    const repeat = reported[`${status}:${digest}`] ?? 1
    const vmId = scope === 'vm' ? (who.vmId ?? who.vmName ?? 'unknown') : null
    const id = transitionId({ kind: 'state', key, generation, status, digest16: digest, repeat }, vmId)
    return store.wasDelivered(sourceOf(who, scope), id, sink)
  }

  return {
    look,
    async stop() {
      stopping.abort()
      await Promise.all(underWay.values())
    },
  }
}

/** Bound to the state that the policy saw. */
function requestOf({ event }: LiveEvent, reason: string): ApprovalRequest {
  return {
    ...unreadable('policy', 0, null, null),
    wanted: [{ command: 'approve', eventId: event.eventId, digest: digest16(event), resources: null }],
    requestedBy: 'policy',
    reason,
  }
}
