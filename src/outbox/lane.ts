import { integer, type Connection } from './connection.ts'

/**
 * Restores the invariant of one lane after a row left or joined it: the first pending row is armed, no other is. A head that stays the head
 * keeps its schedule; a new one is due at once. To be called in the transaction of the change.
 */
export function rearmLane(db: Connection, sink: string, lane: string, now: number): void {
  const first = db.get(
    `SELECT seq, next_attempt_at FROM deliveries INDEXED BY deliveries_lanes
     WHERE sink = ? AND lane = ? AND state = 'pending' ORDER BY seq LIMIT 1`,
    sink,
    lane,
  )
  if (first === undefined) return
  const seq = first['seq'] ?? null
  if (first['next_attempt_at'] !== null) return
  db.run(
    `UPDATE deliveries INDEXED BY deliveries_lanes SET next_attempt_at = NULL
     WHERE sink = ? AND lane = ? AND state = 'pending' AND seq > ? AND next_attempt_at IS NOT NULL`,
    sink,
    lane,
    seq,
  )
  db.run('UPDATE deliveries SET next_attempt_at = ? WHERE seq = ? AND sink = ?', now, seq, sink)
}

/**
 * Makes the next row of a lane due whose head was just settled: one seek, where `rearmLane` looks through the lane. False where nothing is pending
 * in the lane any more.
 */
export function promoteNext(db: Connection, sink: string, lane: string, now: number): boolean {
  const next = db.get(
    `SELECT seq, next_attempt_at FROM deliveries INDEXED BY deliveries_lanes
     WHERE sink = ? AND lane = ? AND state = 'pending' ORDER BY seq LIMIT 1`,
    sink,
    lane,
  )
  if (next === undefined) return false
  if (next['next_attempt_at'] === null)
    db.run('UPDATE deliveries SET next_attempt_at = ? WHERE seq = ? AND sink = ?', now, integer(next, 'seq'), sink)
  return true
}
