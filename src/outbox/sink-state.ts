import { optionalInteger, optionalText, type Connection } from './connection.ts'

/** What is remembered of a sink itself, across restarts. */
export interface SinkState {
  /** Why it stands still until the operator resumes it; null while it runs. */
  readonly haltedReason: string | null
  /** Nothing is sent before (milliseconds since the epoch), because the other side asked for it. */
  readonly heldUntil: number | null
}

export function readSink(db: Connection, sink: string): SinkState {
  const row = db.get('SELECT halted_reason, held_until FROM sinks WHERE name = ?', sink)
  if (row === undefined) return { haltedReason: null, heldUntil: null }
  return { haltedReason: optionalText(row, 'halted_reason'), heldUntil: optionalInteger(row, 'held_until') }
}

/** Nothing is sent to this sink until `resumeSink`. The first reason stays. */
export function haltSink(db: Connection, sink: string, reason: string, now: number): void {
  db.run(
    `INSERT INTO sinks (name, halted_at, halted_reason) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET halted_at = coalesce(halted_at, excluded.halted_at), halted_reason = coalesce(halted_reason, excluded.halted_reason)`,
    sink,
    now,
    reason,
  )
}

export function holdSink(db: Connection, sink: string, until: number): void {
  db.run('INSERT INTO sinks (name, held_until) VALUES (?, ?) ON CONFLICT DO UPDATE SET held_until = excluded.held_until', sink, until)
}

/** Lifts the halt. Tells whether there was one. */
export function resumeSink(db: Connection, sink: string): boolean {
  return db.run('UPDATE sinks SET halted_at = NULL, halted_reason = NULL WHERE name = ? AND halted_reason IS NOT NULL', sink) > 0
}

export function haltedSinks(db: Connection): string[] {
  return db.all('SELECT name FROM sinks WHERE halted_reason IS NOT NULL ORDER BY name').map((row) => String(row['name']))
}
