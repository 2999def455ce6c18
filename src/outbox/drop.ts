import type { Connection } from './connection.ts'
import { rearmLane } from './lane.ts'
import { lanesOf, removeDeliveries, rowKey } from './remove.ts'

export interface DropFilter {
  /** Id of the event. */
  readonly id?: string
  readonly sink?: string
  /** Both where it is missing; what was delivered is only history and goes by itself. */
  readonly state?: 'pending' | 'dead'
}

/** Rows per transaction: the forwarder, another process, waits for the write lock with its event loop. */
const batch = 500

/** Removes what waits or died, for good. Gives the number of deliveries removed; with an empty filter that is all of them. */
export function drop(db: Connection, filter: DropFilter, now: number): number {
  let dropped = 0
  for (;;) {
    const count = db.transaction(() => {
      const rows = selectRows(db, filter)
      removeDeliveries(db, rows)
      for (const { sink, lane } of lanesOf(rows)) rearmLane(db, sink, lane, now)
      return rows.length
    })
    dropped += count
    if (count < batch) return dropped
  }
}

function selectRows(db: Connection, { id = null, sink = null, state = null }: DropFilter | Record<keyof DropFilter, null>) {
  const found = db.all(
    `SELECT d.seq, d.sink, d.lane FROM deliveries d JOIN events e ON e.seq = d.seq
     WHERE d.state <> 'delivered' AND (? IS NULL OR e.id = ?) AND (? IS NULL OR d.sink = ?) AND (? IS NULL OR d.state = ?)
     ORDER BY d.seq LIMIT ${batch}`,
    id,
    id,
    sink,
    sink,
    state,
    state,
  )
  return found.map(rowKey)
}
