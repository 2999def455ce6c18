import { z } from 'zod'
import type { RememberedState } from './model.ts'

/** Before the first reading. */
export const emptyState: RememberedState = {
  vmId: null,
  bootId: null,
  lastGoodPollAt: null,
  incarnation: null,
  epoch: 0,
  lowerReading: false,
  live: {},
  ended: {},
  toldAnomalies: [],
}

const incarnation = z.union([z.number(), z.string()]).nullable()
const time = z.number().nullable()
const text = z.string().nullable()
const count = z.int().nonnegative()

const event = z.object({
  eventId: z.string(),
  eventType: z.string(),
  eventStatus: z.string(),
  eventSource: text,
  notBefore: text,
  resources: z.array(z.string()),
  durationInSeconds: z.int().nullable(),
  resourceType: text,
  description: text,
  raw: z.record(z.string(), z.json()).exactOptional(),
  unreadable: z.array(z.enum(['eventType', 'eventStatus', 'eventSource', 'notBefore', 'resources', 'durationInSeconds'])).exactOptional(),
})

const live = z.object({
  event,
  generation: count,
  reported: z.record(z.string(), count),
  incarnation,
  epoch: count,
  lastNotBefore: text,
  scheduledObserved: z.boolean(),
  scheduledAt: time,
  startedAt: time,
  approved: z.boolean(),
  anomalous: z.boolean(),
})

/** Reads back what was stored as JSON. */
export const rememberedStateSchema: z.ZodType<RememberedState> = z.object({
  vmId: text,
  bootId: text,
  lastGoodPollAt: time,
  incarnation,
  epoch: count,
  lowerReading: z.boolean(),
  live: z.record(z.string(), live),
  ended: z.record(z.string(), z.object({ generation: count, endedAt: z.number() })),
  toldAnomalies: z.array(z.string()),
})

/** Remembers that our own approval of an event was answered 200. `key` is the EventId in any case; one that is not live changes nothing. */
export function markApproved(state: RememberedState, key: string): RememberedState {
  const folded = key.toLowerCase()
  const known = Object.hasOwn(state.live, folded) ? state.live[folded] : undefined
  return known === undefined ? state : { ...state, live: { ...state.live, [folded]: { ...known, approved: true } } }
}
