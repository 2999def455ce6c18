import { integer, text, type Connection } from './connection.ts'

/** The head of a lane whose time has come. */
export interface DueRow {
  readonly seq: number
  readonly lane: string
  /** Attempts so far. */
  readonly attempts: number
  readonly expiresAt: number
}

/** Heads of this sink that are due, the urgent first, then the oldest. */
export function due(db: Connection, sink: string, now: number, limit: number): DueRow[] {
  return db
    .all(
      `SELECT seq, lane, attempts, expires_at FROM deliveries INDEXED BY deliveries_heads
       WHERE sink = ? AND state = 'pending' AND next_attempt_at <= ? ORDER BY priority DESC, seq LIMIT ?`,
      sink,
      now,
      limit,
    )
    .map((row) => ({
      seq: integer(row, 'seq'),
      lane: text(row, 'lane'),
      attempts: integer(row, 'attempts'),
      expiresAt: integer(row, 'expires_at'),
    }))
}

/** When the next head comes due that is not due at `now`; undefined where none waits. */
export function nextDueAfter(db: Connection, sink: string, now: number): number | undefined {
  const row = db.get(
    `SELECT next_attempt_at FROM deliveries INDEXED BY deliveries_schedule
     WHERE sink = ? AND state = 'pending' AND next_attempt_at > ? ORDER BY next_attempt_at LIMIT 1`,
    sink,
    now,
  )
  return row === undefined ? undefined : integer(row, 'next_attempt_at')
}

/** The event of a row, while it is still pending: another process may have dropped it since. */
export function pendingBody(db: Connection, sink: string, seq: number): { body: string; createdAt: number } | undefined {
  const row = db.get(
    `SELECT e.body, e.created_at FROM deliveries d JOIN events e ON e.seq = d.seq
     WHERE d.seq = ? AND d.sink = ? AND d.state = 'pending'`,
    seq,
    sink,
  )
  return row === undefined ? undefined : { body: text(row, 'body'), createdAt: integer(row, 'created_at') }
}

/** After the clock was set back: nothing waits for longer than any schedule of ours can have meant. */
export function clampSchedule(db: Connection, sink: string, now: number, longestMs: number): number {
  return db.run(
    `UPDATE deliveries SET next_attempt_at = ? WHERE sink = ? AND state = 'pending' AND next_attempt_at > ?`,
    now,
    sink,
    now + longestMs,
  )
}
