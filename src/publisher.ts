import type { CloudEvent } from '../sinks/cloud-event.ts'
import type { ConfiguredSink } from './config/sinks.ts'
import { passes } from './events/filter.ts'
import type { Identity } from './events/identity.ts'
import type { RememberedState } from './lifecycle/model.ts'
import type { Commit } from './outbox/commit.ts'
import type { Store } from './outbox/store.ts'
import { stateKeys } from './remembered.ts'

export interface Publication {
  readonly event: CloudEvent
  /** null where the event has no Resources or this VM's name is not known. */
  readonly affectsThisVm: boolean | null
}

export interface Publisher {
  /** Commits events for every sink whose filter they pass, together with the state, and what else goes with them, then wakes the sinks. */
  publish(publications: readonly Publication[], state?: RememberedState, also?: Pick<Commit, 'approvals' | 'holds'>): void
  /** Writes down when IMDS last answered (milliseconds since the epoch), and nothing else. */
  mark(lastGoodPollAt: number): void
}

const urgent = new Set<unknown>(['Preempt', 'Terminate'])

/** The way of every event into the outbox. */
export function createPublisher(options: {
  readonly store: Store
  readonly sinks: readonly ConfiguredSink[]
  readonly prefix: string
  /** What instance metadata said; null where there is nothing to remember. */
  readonly identity: () => Identity | null
  readonly now: () => number
  readonly wake: () => void
}): Publisher {
  const { store, sinks, prefix, now } = options
  return {
    publish(publications, state, also = {}) {
      const at = now()
      const entries = publications.map(({ event, affectsThisVm }) => ({
        event,
        priority: urgent.has(event['azeventtype']) ? (1 as const) : (0 as const),
        targets: sinks
          .filter((sink) => passes(sink.filter, event, affectsThisVm, prefix))
          .map((sink) => ({ sink: sink.name, expiresAt: at + sink.maxAgeSeconds * 1000 })),
      }))
      const identity = options.identity()
      const remembered = { ...(state && { [stateKeys.lifecycle]: state }), ...(state && identity && { [stateKeys.identity]: identity }) }
      store.commit({ ...also, state: remembered, events: entries })
      if (entries.length > 0) options.wake()
    },
    mark: (lastGoodPollAt) => store.writeState(stateKeys.lastGoodPoll, lastGoodPollAt),
  }
}
