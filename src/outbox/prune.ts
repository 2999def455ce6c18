import { integer, text, type Connection } from './connection.ts'
import { rearmLane } from './lane.ts'
import { lanesOf, removeDeliveries, rowKey } from './remove.ts'

const hourMs = 60 * 60 * 1000

/** How long a settled row stays: what was delivered for `outbox show`, what died for an operator to replay. */
const keptMs = { delivered: 24 * hourMs, dead: 30 * 24 * hourMs } as const

/** Rows per transaction, so that a large clean-up holds up no poll. */
const batch = 500

export interface Pruned {
  /** Deliveries that ran out of time and became dead letters, of configured sinks or not. */
  readonly expired: readonly { readonly sink: string; readonly id: string; readonly attempts: number }[]
  /** Rows that were removed at the end of their time. */
  readonly removed: readonly { readonly sink: string; readonly state: 'delivered' | 'dead'; readonly count: number }[]
  /** There is more to do: call again. */
  readonly more: boolean
}

/** One bounded step of clean-up. */
export function prune(db: Connection, now: number): Pruned {
  const expired = expirePending(db, now)
  const delivered = removeSettled(db, 'delivered', now)
  const dead = removeSettled(db, 'dead', now)
  const more = [expired.length, delivered.total, dead.total].includes(batch)
  // Gives pages back to the file system once a backlog is gone; most pages are simply used again.
  if (!more && delivered.total + dead.total > 0) db.all('PRAGMA incremental_vacuum(1000)')
  return { expired, removed: [...delivered.counts, ...dead.counts], more }
}

function expirePending(db: Connection, now: number): Pruned['expired'] {
  return db.transaction(() => {
    const rows = db.all(
      `SELECT d.seq, d.sink, d.lane, d.attempts, e.id FROM deliveries d INDEXED BY deliveries_expiry JOIN events e ON e.seq = d.seq
       WHERE d.state = 'pending' AND d.expires_at <= ? ORDER BY d.expires_at LIMIT ${batch}`,
      now,
    )
    const keys = rows.map(rowKey)
    for (const { seq, sink } of keys) {
      // The last failure stays readable: it is why the time ran out.
      db.run(
        `UPDATE deliveries SET state = 'dead', next_attempt_at = NULL, settled_at = ?, last_code = 'expired',
           last_detail = coalesce('last failure: ' || last_code || ': ' || last_detail, 'never tried') WHERE seq = ? AND sink = ?`,
        now,
        seq,
        sink,
      )
    }
    for (const { sink, lane } of lanesOf(keys)) rearmLane(db, sink, lane, now)
    return rows.map((row) => ({ sink: text(row, 'sink'), id: text(row, 'id'), attempts: integer(row, 'attempts') }))
  })
}

function removeSettled(db: Connection, state: 'delivered' | 'dead', now: number): { counts: Pruned['removed']; total: number } {
  return db.transaction(() => {
    const rows = db
      .all(
        `SELECT seq, sink, lane FROM deliveries INDEXED BY deliveries_settled
         WHERE state = ? AND settled_at <= ? ORDER BY settled_at LIMIT ${batch}`,
        state,
        now - keptMs[state],
      )
      .map(rowKey)
    removeDeliveries(db, rows)
    const counts = new Map<string, number>()
    for (const { sink } of rows) counts.set(sink, (counts.get(sink) ?? 0) + 1)
    return { counts: [...counts].map(([sink, count]) => ({ sink, state, count })), total: rows.length }
  })
}
