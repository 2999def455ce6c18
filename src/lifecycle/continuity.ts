import { incarnationNumber } from './incarnation.ts'
import type { Reading, RememberedState } from './model.ts'

/** IMDS switches the service off after 24 h without a request; its incarnation may then start anew. */
const longestGapMs = 24 * 60 * 60 * 1000
/** What time synchronisation may set back at a boot without making the gap unknown. */
const longestSetBackMs = 60 * 60 * 1000

/** How a reading follows on what is remembered. */
export interface Continuity {
  /** Between the last good reading and this one; 0 before the first, and when the clock stepped back. */
  readonly gapMs: number
  /** The epoch of this reading. */
  readonly epoch: number
  /** Lower for the first time: perhaps a stale replica. Additions count, the rest waits for the next reading. */
  readonly stale: boolean
  /** Why nothing can be concluded about events that are absent. */
  readonly inconclusive: 'gap' | 'restart' | null
  /** null where either boot id is unknown. */
  readonly bootChanged: boolean | null
}

export function continuityOf(state: RememberedState, reading: Reading): Continuity {
  const before = incarnationNumber(state.incarnation)
  const now = incarnationNumber(reading.document.incarnation)
  const lower = before !== null && now !== null && now < before
  const gapMs = state.lastGoodPollAt === null ? 0 : Math.max(0, reading.at - state.lastGoodPollAt)
  // A clock that was set back leaves the gap unknown: as if it were too long.
  const setBack = state.lastGoodPollAt !== null && state.lastGoodPollAt - reading.at > longestSetBackMs
  const longGap = gapMs > longestGapMs || setBack
  const restarted = lower && (longGap || state.lowerReading)
  const bootChanged = state.bootId === null || reading.bootId === null ? null : state.bootId !== reading.bootId
  return {
    gapMs,
    epoch: restarted ? state.epoch + 1 : state.epoch,
    stale: lower && !restarted,
    inconclusive: longGap ? 'gap' : restarted ? 'restart' : null,
    bootChanged,
  }
}
