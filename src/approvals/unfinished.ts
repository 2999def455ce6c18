import { digest16 } from '../lifecycle/digest.ts'
import type { LiveEvent, RememberedState } from '../lifecycle/model.ts'
import { statusName } from '../lifecycle/status.ts'
import type { Store } from '../outbox/store.ts'
import type { Approver } from './approver.ts'
import type { Refusal } from './reason.ts'
import { unreadable } from './request.ts'

/**
 * Tells what came of approvals whose POST was on its way when the forwarder was killed, which an approval makes likely: it takes this machine down.
 * One by the policy whose event is as it was is left to the policy, which asks again. Nothing is posted here. Throws what the store throws.
 */
export function tellUnfinished(options: {
  readonly store: Pick<Store, 'unfinishedApprovals'>
  readonly approver: Pick<Approver, 'refuse'>
  readonly live: RememberedState['live']
  /** Milliseconds since the epoch: what was begun later is under way. */
  readonly before: number
}): void {
  const { store, approver, live, before } = options
  for (const { via, delivery, eventKey, requestedBy, reason } of store.unfinishedApprovals(before)) {
    const event = Object.hasOwn(live, eventKey) ? live[eventKey] : undefined
    const digest = via === 'policy' ? (delivery.split(':').at(-1) ?? null) : null
    const refusal = judge(event, digest)
    if (refusal === null) continue
    const wanted = [{ command: 'approve', eventId: event?.event.eventId ?? eventKey, digest, resources: null }]
    const request = { ...unreadable(via, 0, null, null), wanted, requestedBy: requestedBy ?? via, reason }
    approver.refuse({ request, delivery }, refusal)
  }
}

function judge(live: LiveEvent | undefined, digest: string | null): Refusal | null {
  if (live === undefined) return { code: 'event_not_visible', detail: 'the event is over' }
  if (statusName(live.event.eventStatus) !== 'scheduled') return { code: 'event_already_started', detail: 'the event has started' }
  if (digest === null)
    return {
      code: 'relay_failed',
      detail: 'the forwarder was stopped while it approved, and the event is still Scheduled: approve it again',
    }
  if (digest === digest16(live.event)) return null
  return { code: 'state_changed', detail: 'the event is another one now than the policy saw' }
}
