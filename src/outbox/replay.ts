import type { Connection } from './connection.ts'
import { rearmLane } from './lane.ts'
import { lanesOf, rowKey } from './remove.ts'
import { haltedSinks, resumeSink } from './sink-state.ts'

export interface ReplayFilter {
  /** Id of the event. */
  readonly id?: string
  readonly sink?: string
}

export interface Replayed {
  /** Dead letters that wait again. */
  readonly replayed: number
  /** Sinks that were halted and run again. */
  readonly resumed: readonly string[]
}

/** Rows per transaction: the forwarder, another process, waits for the write lock with its event loop. */
const batch = 500

/** Least time that a replayed letter has. Its first deadline may be long past, and the operator wants it tried, not expired. */
const graceMs = 24 * 60 * 60 * 1000

/**
 * Puts dead letters back into their lanes, in the order of their events and with a fresh count of attempts, and lifts the halt of the sink
 * (of all sinks that the filter allows, whether or not they had dead letters).
 */
export function replay(db: Connection, filter: ReplayFilter, now: number): Replayed {
  const resumed = new Set<string>()
  if (filter.id === undefined) {
    for (const sink of haltedSinks(db)) {
      if (filter.sink === undefined || filter.sink === sink) resume(db, sink, resumed)
    }
  }
  let replayed = 0
  for (;;) {
    const count = db.transaction(() => {
      const rows = selectDead(db, filter)
      for (const { seq, sink } of rows) {
        db.run(
          `UPDATE deliveries SET state = 'pending', attempts = 0, next_attempt_at = NULL, settled_at = NULL, expires_at = max(expires_at, ?)
           WHERE seq = ? AND sink = ?`,
          now + graceMs,
          seq,
          sink,
        )
      }
      for (const { sink, lane } of lanesOf(rows)) {
        rearmLane(db, sink, lane, now)
        resume(db, sink, resumed)
      }
      return rows.length
    })
    replayed += count
    if (count < batch) return { replayed, resumed: [...resumed] }
  }
}

function resume(db: Connection, sink: string, resumed: Set<string>): void {
  if (resumeSink(db, sink)) resumed.add(sink)
}

function selectDead(db: Connection, { id = null, sink = null }: ReplayFilter | Record<keyof ReplayFilter, null>) {
  const found = db.all(
    `SELECT d.seq, d.sink, d.lane FROM deliveries d INDEXED BY deliveries_settled JOIN events e ON e.seq = d.seq
     WHERE d.state = 'dead' AND d.settled_at IS NOT NULL AND (? IS NULL OR e.id = ?) AND (? IS NULL OR d.sink = ?)
     LIMIT ${batch}`,
    id,
    id,
    sink,
    sink,
  )
  return found.map(rowKey)
}
