import type { Connection } from './connection.ts'
import { promoteNext } from './lane.ts'
import { haltSink, holdSink } from './sink-state.ts'

/** What became of one row. `code` and `detail` are those of the outcome. */
export type Settlement = { readonly seq: number; readonly lane: string } & (
  | { readonly status: 'delivered' }
  | { readonly status: 'retry'; readonly code: string; readonly detail: string; readonly nextAttemptAt: number }
  /** `attempted: false` where it was given up without asking the sink. */
  | { readonly status: 'dead'; readonly code: string; readonly detail: string; readonly attempted: boolean }
)

/** What the outcomes mean for the sink as a whole. */
export interface SinkVerdict {
  readonly heldUntil?: number
  readonly halted?: string
}

export interface Settled {
  /** Of these lanes one at least has a row that is still pending, due now or later. */
  readonly moreToDo: boolean
  /** Rows that were dropped or settled by somebody else meanwhile, by `seq`: nothing was changed. */
  readonly moot: ReadonlySet<number>
}

/** A detail is one line for people; what a remote side sends as an error page is not stored whole. */
const detailLength = 500

/**
 * Records many outcomes in one transaction, without waiting for the disk: what a power failure takes back is sent once more under the same id.
 * A row that meanwhile was dropped, or settled by another process, is left alone, but for one that was given up while it was in flight and did
 * arrive: the truth wins.
 */
export function settle(db: Connection, sink: string, settlements: readonly Settlement[], verdict: SinkVerdict, now: number): Settled {
  // A halt is the one thing here that must not be taken back: the other side asked not to be called again.
  const lasting = verdict.halted !== undefined
  const record = (work: () => Settled): Settled => (lasting ? db.transaction(work) : db.relaxedTransaction(work))
  return record(() => {
    const moot = new Set<number>()
    let moreToDo = false
    for (const settlement of settlements) {
      if (settleOne(db, sink, settlement, now) === 0) moot.add(settlement.seq)
      if (settlement.status === 'retry' || promoteNext(db, sink, settlement.lane, now)) moreToDo = true
    }
    if (verdict.heldUntil !== undefined) holdSink(db, sink, verdict.heldUntil)
    if (verdict.halted !== undefined) haltSink(db, sink, verdict.halted, now)
    return { moreToDo, moot }
  })
}

/** Gives the number of rows that it changed. */
function settleOne(db: Connection, sink: string, settlement: Settlement, now: number): number {
  const { seq } = settlement
  if (settlement.status === 'delivered')
    return db.run(
      `UPDATE deliveries SET state = 'delivered', attempts = attempts + 1, next_attempt_at = NULL, last_code = NULL, last_detail = NULL,
           settled_at = ? WHERE seq = ? AND sink = ? AND state <> 'delivered'`,
      now,
      seq,
      sink,
    )
  if (settlement.status === 'retry')
    // A row that is no longer armed lost its place to a replayed one while it was in flight: it must not become a second head.
    return db.run(
      `UPDATE deliveries SET attempts = attempts + 1, last_code = ?, last_detail = ?,
           next_attempt_at = CASE WHEN next_attempt_at IS NULL THEN NULL ELSE ? END WHERE seq = ? AND sink = ? AND state = 'pending'`,
      settlement.code,
      settlement.detail.slice(0, detailLength),
      Math.trunc(settlement.nextAttemptAt),
      seq,
      sink,
    )
  return db.run(
    `UPDATE deliveries SET state = 'dead', attempts = attempts + ?, next_attempt_at = NULL, last_code = ?, last_detail = ?,
       settled_at = ? WHERE seq = ? AND sink = ? AND state = 'pending'`,
    settlement.attempted ? 1 : 0,
    settlement.code,
    settlement.detail.slice(0, detailLength),
    now,
    seq,
    sink,
  )
}
