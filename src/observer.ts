import type { CloudEvent } from '../sinks/cloud-event.ts'
import type { Identity } from './events/identity.ts'
import { publishes, type PublishMode } from './events/publish.ts'
import { buildScheduledEvent } from './events/scheduled-event.ts'
import { diff } from './lifecycle/differ.ts'
import type { Anomaly, EventsDocument, RememberedState, Transition } from './lifecycle/model.ts'
import { namesThisVm } from './lifecycle/names.ts'
import { markApproved } from './lifecycle/remembered.ts'
import type { Commit } from './outbox/commit.ts'
import type { Publication, Publisher } from './publisher.ts'

/** While nothing is going on, the time of the last good poll is written down only so often: it costs a disk flush. */
const markEveryMs = 30_000

export interface ObserverOptions {
  readonly publisher: Publisher
  readonly remembered: RememberedState
  readonly bootId: string | null
  /** Who this VM is; null while that is not known. */
  readonly identity: () => Identity | null
  /** The same for a document that waits: gives up waiting for metadata after a grace. */
  readonly decideIdentity: () => Identity | null
  readonly publish: PublishMode
  readonly scope: 'group' | 'vm'
  readonly prefix: string
  readonly now: () => number
  readonly onTransition: (transition: Transition) => void
  readonly onAnomaly: (anomaly: Anomaly) => void
}

/** Outcomes of approvals, with the events that tell them. */
interface SettledApprovals extends Pick<Commit, 'approvals' | 'holds'> {
  readonly events: readonly CloudEvent[]
  /** Folded ids of the events that IMDS took our approval of. */
  readonly approved: readonly string[]
}

export interface Observer {
  /** What is remembered now, for status and approvals. */
  state(): RememberedState
  /** Takes in a document; false when it has to be shown again because this VM is not known yet. Throws what the store throws. */
  observe(document: EventsDocument): boolean
  /** Publishes what came of approvals and remembers, for the verdict at the end of an event, which were ours. Throws what the store throws. */
  settle(settled: SettledApprovals): void
  /** Writes down when IMDS last answered; for a graceful stop. */
  writeMark(): void
}

/**
 * Document -> transitions -> events -> one commit of state and outbox rows. Where the commit fails (a full disk), what was seen is kept in memory
 * and goes along with the next poll's; only a crash in between falls back to what is on the disk.
 */
export function createObserver(options: ObserverOptions): Observer {
  const { publisher, bootId, now } = options
  let state = options.remembered
  /** The document that the state already reflects whole: seeing it again changes nothing but the time. */
  let accepted: EventsDocument | null = null
  let markedAt = state.lastGoodPollAt ?? 0

  /** Seen and not on the disk yet, because it is full: the truth of the moment is gone from IMDS, so it is kept here until it can be written. */
  let unwritten: Publication[] = []
  let behind = false
  const write = (at: number): void => {
    behind = true
    publisher.publish(unwritten, state)
    behind = false
    unwritten = []
    markedAt = at
  }

  const keepMark = (at: number, force: boolean): void => {
    // With an event under way an outage may begin at any moment, and its length is told: every poll counts.
    const busy = Object.keys(state.live).length > 0
    if (!force && !busy && at - markedAt < markEveryMs && at >= markedAt) return
    publisher.mark(at)
    markedAt = at
  }

  /** Of the event that an approval is about; null where it is not in sight. */
  const affects = (event: CloudEvent): boolean | null => {
    const live = Object.hasOwn(state.live, event.partitionkey) ? state.live[event.partitionkey] : undefined
    return live === undefined ? null : namesThisVm(live.event.resources, options.identity()?.vmName ?? null)
  }

  return {
    state: () => state,
    observe(document) {
      const at = now()
      if (document === accepted) {
        state = { ...state, lastGoodPollAt: at }
        if (behind) write(at)
        else keepMark(at, false)
        return true
      }
      const identity = options.decideIdentity()
      if (identity === null) return false
      const result = diff(state, { document, at, bootId, vmId: identity.vmId, vmName: identity.vmName })
      const context = { prefix: options.prefix, scope: options.scope, identity }
      const events = result.transitions
        .filter((transition) => publishes(options.publish, transition, identity.vmName))
        .map((transition) => ({
          event: buildScheduledEvent(transition, context),
          affectsThisVm: namesThisVm(transition.event.resources, identity.vmName),
        }))
      unwritten.push(...events)
      state = result.state
      accepted = state.lowerReading ? null : document
      for (const transition of result.transitions) options.onTransition(transition)
      for (const anomaly of result.anomalies) options.onAnomaly(anomaly)
      write(at)
      return true
    },
    settle({ events, approved, ...also }) {
      const next = approved.reduce(markApproved, state)
      const publications = events.map((event) => ({ event, affectsThisVm: affects(event) }))
      publisher.publish([...unwritten, ...publications], next === state && !behind ? undefined : next, also)
      state = next
      behind = false
      unwritten = []
    },
    writeMark() {
      if (state.lastGoodPollAt !== null) keepMark(state.lastGoodPollAt, true)
    },
  }
}
