import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { settleApproval, type FinalApproval } from './approvals.ts'
import type { Connection } from './connection.ts'
import { putHold, type Hold } from './holds.ts'
import { writeState } from './remembered.ts'

export interface Commit {
  /** JSON values by key, to be remembered; `undefined` forgets a key. */
  readonly state?: Readonly<Record<string, unknown>>
  readonly events?: readonly OutgoingEvent[]
  /** Outcomes of approvals, and the holds among them. */
  readonly approvals?: readonly FinalApproval[]
  readonly holds?: readonly Hold[]
}

export interface OutgoingEvent {
  readonly event: CloudEvent
  /** 1 jumps the queue: Preempt and Terminate leave less than a minute. */
  readonly priority: 0 | 1
  /** The sinks that want it, and until when (milliseconds since the epoch). With none it is not stored. */
  readonly targets: readonly { readonly sink: string; readonly expiresAt: number }[]
}

export interface Committed {
  /** Events that were new. */
  readonly stored: number
  /** Events whose source and id were there already; the first copy stays as it is, and is not sent again. */
  readonly known: number
}

/** Stores what is remembered and the events that follow from it in one transaction: both or neither survive. */
export function commit(db: Connection, { state = {}, events = [], approvals = [], holds = [] }: Commit, now: number): Committed {
  return db.transaction(() => {
    for (const approval of approvals) settleApproval(db, approval, now)
    for (const hold of holds) putHold(db, hold)
    for (const [key, value] of Object.entries(state)) writeState(db, key, value)
    let stored = 0
    let known = 0
    for (const outgoing of events) {
      if (outgoing.targets.length === 0) continue
      const seq = insertEvent(db, outgoing, now)
      if (seq === undefined) {
        known += 1
        continue
      }
      stored += 1
      for (const target of outgoing.targets) insertDelivery(db, seq, outgoing, target, now)
    }
    return { stored, known }
  })
}

function insertEvent(db: Connection, { event, priority }: OutgoingEvent, now: number): number | undefined {
  const row = db.get(
    `INSERT INTO events (source, id, type, lane, priority, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (source, id) DO NOTHING RETURNING seq`,
    event.source,
    event.id,
    event.type,
    event.partitionkey,
    priority,
    JSON.stringify(event),
    now,
  )
  return row === undefined ? undefined : Number(row['seq'])
}

/** The last of its lane: armed only where nothing waits before it. */
function insertDelivery(
  db: Connection,
  seq: number,
  { event, priority }: OutgoingEvent,
  target: OutgoingEvent['targets'][number],
  now: number,
): void {
  db.run(
    `INSERT INTO deliveries (seq, sink, lane, priority, state, attempts, expires_at, next_attempt_at)
     VALUES (?, ?, ?, ?, 'pending', 0, ?,
       CASE WHEN EXISTS (SELECT 1 FROM deliveries WHERE sink = ? AND lane = ? AND state = 'pending') THEN NULL ELSE ? END)`,
    seq,
    target.sink,
    event.partitionkey,
    priority,
    Math.trunc(target.expiresAt),
    target.sink,
    event.partitionkey,
    now,
  )
}
