import type { DeliveryOutcome } from '../../sinks/contract.ts'
import type { DueRow } from './due.ts'
import type { Pacing } from './pacing.ts'
import type { Settlement, SinkVerdict } from './settle.ts'
import type { HealthKeeper } from './sink-health.ts'

/** What came of one row that was taken up. */
export interface Finished {
  readonly row: Omit<DueRow, 'body'>
  /** Of the event; null where the stored text could not be read. Not the event itself: a sink may be slow, and outcomes wait for each other. */
  readonly id: string | null
  /** When the sink was asked; null where the row was given up without asking it. */
  readonly startedAt: number | null
  readonly endedAt: number
  readonly outcome: DeliveryOutcome
}

/** The same, with what it means, until that is in the store. */
export interface Judged extends Finished {
  /** The one that was just made included. */
  readonly attempts: number
  readonly settlement: Settlement
  readonly verdict: SinkVerdict
}

/** Decides what an outcome means for its row and for its sink, whose pace and health follow at once. */
export function judge(finished: Finished, pacing: Pacing, health: HealthKeeper): Judged {
  const { row, outcome, startedAt } = finished
  const { seq, lane } = row
  const attempted = startedAt !== null
  const attempts = row.attempts + (attempted ? 1 : 0)
  const judged = (settlement: Settlement, verdict: SinkVerdict = {}): Judged => ({ ...finished, attempts, settlement, verdict })

  if (outcome.status !== 'retry') {
    // A sink that rejects an event has read it: it works.
    if (attempted) {
      pacing.succeeded()
      health.succeeded()
    }
    return judged(
      outcome.status === 'delivered' ? { seq, lane, status: 'delivered' } : { ...outcome, seq, lane, status: 'dead', attempted },
    )
  }
  const { code, detail } = outcome
  const { nextAttemptAt, outlives } = pacing.failed(outcome, attempts, startedAt ?? 0)
  const halted = outcome.because === 'stopped' ? `${code}: ${detail}` : undefined
  if (halted === undefined) health.failed(outcome)
  else health.halted(halted)
  return judged(
    { seq, lane, status: 'retry', code, detail, nextAttemptAt },
    { ...(outlives ? { heldUntil: nextAttemptAt } : {}), ...(halted === undefined ? {} : { halted }) },
  )
}

/** What many outcomes together mean for their sink. */
export function sumOf(judged: readonly Judged[]): SinkVerdict {
  const held = judged.flatMap(({ verdict }) => verdict.heldUntil ?? [])
  const halted = judged.find(({ verdict }) => verdict.halted !== undefined)?.verdict.halted
  return { ...(held.length > 0 ? { heldUntil: Math.max(...held) } : {}), ...(halted === undefined ? {} : { halted }) }
}
