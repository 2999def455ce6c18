import { integer, text, type Connection } from './connection.ts'

/** The head of a lane whose time has come. */
export interface DueRow {
  readonly seq: number
  readonly lane: string
  /** Attempts so far. */
  readonly attempts: number
  readonly expiresAt: number
  /** When the event was committed. */
  readonly createdAt: number
  /** The event as JSON. */
  readonly body: string
}

/** Heads of this sink that are due, but for those that are under way (`except`, by `seq`): the urgent first, then the oldest. */
export function due(db: Connection, sink: string, now: number, limit: number, except: readonly number[] = []): DueRow[] {
  return db
    .all(
      `SELECT d.seq, d.lane, d.attempts, d.expires_at, e.created_at, e.body
       FROM deliveries d INDEXED BY deliveries_heads CROSS JOIN events e ON e.seq = d.seq
       WHERE d.sink = ? AND d.state = 'pending' AND d.next_attempt_at <= ? AND d.seq NOT IN (SELECT value FROM json_each(?))
       ORDER BY d.priority DESC, d.seq LIMIT ?`,
      sink,
      now,
      JSON.stringify(except),
      limit,
    )
    .map((row) => ({
      seq: integer(row, 'seq'),
      lane: text(row, 'lane'),
      attempts: integer(row, 'attempts'),
      expiresAt: integer(row, 'expires_at'),
      createdAt: integer(row, 'created_at'),
      body: text(row, 'body'),
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

/** After the clock was set back: nothing waits for longer than any schedule of ours can have meant. */
export function clampSchedule(db: Connection, sink: string, now: number, longestMs: number): number {
  return db.run(
    `UPDATE deliveries SET next_attempt_at = ? WHERE sink = ? AND state = 'pending' AND next_attempt_at > ?`,
    now,
    sink,
    now + longestMs,
  )
}
