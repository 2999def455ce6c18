import { integer, optionalInteger, optionalText, text, type Connection, type Row } from './connection.ts'

const dayMs = 24 * 60 * 60 * 1000
/** How long a row stays at least: what was relayed for the record, a refusal only until the broker can no longer deliver it again. */
const keptMs = { relayed: 30 * dayMs, other: dayMs } as const

/** What is remembered of one request and one event that it asks for. Times are milliseconds since the epoch. */
export interface ApprovalRow {
  readonly request: string
  /** Folded EventId; `''` where the request names none that can be read. */
  readonly eventKey: string
  /** Which message of which queue it came as; null where it was no message. */
  readonly delivery: string | null
  /** `recorded`: a POST may have gone out, what became of it is not known. */
  readonly state: 'recorded' | 'final'
  /** null while it is not final. */
  readonly code: string | null
  /** POSTs that were begun. */
  readonly attempts: number
  readonly settledAt: number | null
  /** JSON of the event that told the outcome; null while it is not final. */
  readonly event: string | null
}

/** An outcome to be stored with the event that tells it. */
export interface FinalApproval {
  readonly request: string
  readonly eventKey: string
  readonly delivery: string | null
  readonly code: string
  readonly attempts: number
  /** The row is kept past this (milliseconds since the epoch); null where the request does not end. */
  readonly expiresAt: number | null
  readonly event: string
}

/** Everything that is known of a request, one row an event. */
export function findApprovals(db: Connection, request: string): ApprovalRow[] {
  return db.all('SELECT * FROM approvals WHERE request = ? ORDER BY event_key', request).map(approval)
}

/** An approval of policy or command that was begun and never ended: nobody brings it again, as the broker does with a message. */
export interface UnfinishedApproval {
  readonly via: 'policy' | 'command'
  readonly delivery: string
  readonly eventKey: string
  readonly requestedBy: string | null
  readonly reason: string | null
}

/** Those whose POST was begun before `before`, but for commands that somebody still waits for. */
export function unfinishedApprovals(db: Connection, before: number, now: number): UnfinishedApproval[] {
  return db
    .all(
      `SELECT a.request, a.event_key, c.requested_by, c.reason
       FROM approvals a LEFT JOIN commands c ON a.request = 'command:' || c.seq
       WHERE a.state = 'recorded' AND a.posted_at < ? AND (a.request LIKE 'policy:%' OR a.request LIKE 'command:%')
         AND NOT (c.seq IS NOT NULL AND c.answer IS NULL AND c.expires_at > ?)
       ORDER BY a.posted_at`,
      before,
      now,
    )
    .map((row) => {
      const request = text(row, 'request')
      const via = request.startsWith('policy:') ? 'policy' : 'command'
      return {
        via,
        delivery: request.slice(via.length + 1),
        eventKey: text(row, 'event_key'),
        requestedBy: optionalText(row, 'requested_by'),
        reason: optionalText(row, 'reason'),
      }
    })
}

/**
 * Notes, before a POST, that it is about to go out, without waiting for the disk: where a power failure takes the note back, the message comes again
 * as if for the first time, and IMDS is read before anything is repeated, which is what the note asks for too.
 */
export function recordApproval(db: Connection, request: string, eventKeys: readonly string[], delivery: string | null, now: number): void {
  db.relaxedTransaction(() => {
    for (const eventKey of eventKeys) {
      db.run(
        `INSERT INTO approvals (request, event_key, delivery, state, attempts, posted_at, kept_until) VALUES (?, ?, ?, 'recorded', 1, ?, ?)
         ON CONFLICT DO UPDATE SET attempts = attempts + 1, posted_at = excluded.posted_at WHERE state = 'recorded'`,
        request,
        eventKey,
        delivery,
        now,
        now + keptMs.other,
      )
    }
  })
}

/** The outcome. The first one stays. Within a transaction. */
export function settleApproval(db: Connection, final: FinalApproval, now: number): void {
  const kept = final.code === 'ok' ? keptMs.relayed : keptMs.other
  db.run(
    `INSERT INTO approvals (request, event_key, delivery, state, code, attempts, settled_at, kept_until, event)
     VALUES (?, ?, ?, 'final', ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET delivery = excluded.delivery, state = 'final', code = excluded.code, attempts = excluded.attempts,
       settled_at = excluded.settled_at, kept_until = excluded.kept_until, event = excluded.event WHERE state = 'recorded'`,
    final.request,
    final.eventKey,
    final.delivery,
    final.code,
    final.attempts,
    now,
    Math.trunc(Math.max(now, final.expiresAt ?? 0)) + kept,
    final.event,
  )
}

/** Events that a POST was begun for since then. */
export function countPosted(db: Connection, since: number, now: number): number {
  // A clock that was set back must not stop everything.
  const row = db.get('SELECT count(*) AS n FROM approvals WHERE posted_at > ? AND posted_at <= ?', since, now)
  return row === undefined ? 0 : integer(row, 'n')
}

/** The last outcome of each of these events. */
export function lastApprovals(db: Connection, eventKeys: readonly string[]): ApprovalRow[] {
  return eventKeys.flatMap((key) =>
    db.all('SELECT * FROM approvals WHERE event_key = ? ORDER BY settled_at IS NULL DESC, settled_at DESC LIMIT 1', key).map(approval),
  )
}

/** Forgets at most 500 rows at the end of their time; true where there are more. */
export function pruneApprovals(db: Connection, now: number): boolean {
  const batch = 500
  return db.transaction(() => {
    const gone = db.run(
      `DELETE FROM approvals WHERE (request, event_key) IN (SELECT request, event_key FROM approvals WHERE kept_until <= ? LIMIT ${batch})`,
      now,
    )
    db.run('DELETE FROM holds WHERE held_at <= ?', now - keptMs.relayed)
    db.run('DELETE FROM commands WHERE expires_at <= ?', now - keptMs.other)
    return gone === batch
  })
}

const approval = (row: Row): ApprovalRow => ({
  request: text(row, 'request'),
  eventKey: text(row, 'event_key'),
  delivery: optionalText(row, 'delivery'),
  state: text(row, 'state') === 'final' ? 'final' : 'recorded',
  code: optionalText(row, 'code'),
  attempts: integer(row, 'attempts'),
  settledAt: optionalInteger(row, 'settled_at'),
  event: optionalText(row, 'event'),
})
