import { integer, optionalText, text, type Connection } from './connection.ts'

/** An event that is not to be approved. */
export interface Hold {
  /** Folded EventId. */
  readonly eventKey: string
  readonly requestedBy: string | null
  /** Milliseconds since the epoch. */
  readonly heldAt: number
}

/** The first hold of an event stays. Within a transaction or alone. */
export function putHold(db: Connection, { eventKey, requestedBy, heldAt }: Hold): void {
  db.run('INSERT INTO holds (event_key, requested_by, held_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING', eventKey, requestedBy, heldAt)
}

export function releaseHold(db: Connection, eventKey: string): boolean {
  return db.run('DELETE FROM holds WHERE event_key = ?', eventKey) > 0
}

export function listHolds(db: Connection): Hold[] {
  return db.all('SELECT * FROM holds ORDER BY event_key').map((row) => ({
    eventKey: text(row, 'event_key'),
    requestedBy: optionalText(row, 'requested_by'),
    heldAt: integer(row, 'held_at'),
  }))
}
