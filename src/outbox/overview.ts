import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { integer, optionalInteger, optionalText, text, type Connection, type Row } from './connection.ts'
import { parseStoredEvent } from './stored-event.ts'

export type DeliveryState = 'pending' | 'delivered' | 'dead'

/** Times are milliseconds since the epoch. */
export interface SinkSummary {
  readonly name: string
  readonly pending: number
  readonly dead: number
  readonly oldestPendingAt: number | null
  readonly haltedReason: string | null
}

interface Delivery {
  readonly sink: string
  readonly state: DeliveryState
  readonly attempts: number
  /** null while an earlier event of the same lane waits. */
  readonly nextAttemptAt: number | null
  readonly expiresAt: number
  readonly lastCode: string | null
  readonly lastDetail: string | null
  readonly settledAt: number | null
}

export interface ListedDelivery extends Delivery {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly lane: string
  readonly createdAt: number
}

export interface ListFilter {
  readonly sink?: string
  /** All where it is missing. */
  readonly states?: readonly DeliveryState[]
  /** 100 where it is missing. */
  readonly limit?: number
}

export interface ShownEvent {
  readonly id: string
  readonly source: string
  readonly createdAt: number
  /** null where the stored text cannot be read. */
  readonly event: CloudEvent | null
  readonly deliveries: readonly Delivery[]
}

/** One entry for each sink that something waits for, died at, or that is halted; by name. */
export function summarize(db: Connection): SinkSummary[] {
  const pending = counts(db.all(`SELECT sink, count(*) AS n FROM deliveries WHERE state = 'pending' GROUP BY sink`))
  const dead = counts(db.all(`SELECT sink, count(*) AS n FROM deliveries WHERE state = 'dead' AND settled_at IS NOT NULL GROUP BY sink`))
  const halted = new Map(
    db
      .all('SELECT name, halted_reason FROM sinks WHERE halted_reason IS NOT NULL')
      .map((row) => [text(row, 'name'), text(row, 'halted_reason')]),
  )
  const names = new Set([...pending.keys(), ...dead.keys(), ...halted.keys()])
  return [...names].toSorted().map((name) => ({
    name,
    pending: pending.get(name) ?? 0,
    dead: dead.get(name) ?? 0,
    oldestPendingAt: pending.has(name) ? oldestPendingAt(db, name) : null,
    haltedReason: halted.get(name) ?? null,
  }))
}

const counts = (rows: Row[]): Map<string, number> => new Map(rows.map((row) => [text(row, 'sink'), integer(row, 'n')]))

/** The oldest of a lane is its head, so looking at the heads is enough. */
function oldestPendingAt(db: Connection, sink: string): number | null {
  const row = db.get(
    `SELECT min(e.created_at) AS oldest FROM events e WHERE e.seq IN (
       SELECT min(seq) FROM deliveries WHERE sink = ? AND state = 'pending' AND next_attempt_at IS NOT NULL GROUP BY priority)`,
    sink,
  )
  return row === undefined ? null : optionalInteger(row, 'oldest')
}

/** Oldest first. */
export function listDeliveries(db: Connection, { sink, states, limit = 100 }: ListFilter): ListedDelivery[] {
  return db
    .all(
      `SELECT d.*, e.id, e.source, e.type, e.created_at FROM deliveries d JOIN events e ON e.seq = d.seq
       WHERE (? IS NULL OR d.sink = ?) AND (? IS NULL OR d.state IN (SELECT value FROM json_each(?))) ORDER BY d.seq, d.sink LIMIT ?`,
      sink ?? null,
      sink ?? null,
      states === undefined ? null : JSON.stringify(states),
      JSON.stringify(states ?? []),
      limit,
    )
    .map((row) => ({
      id: text(row, 'id'),
      source: text(row, 'source'),
      type: text(row, 'type'),
      lane: text(row, 'lane'),
      createdAt: integer(row, 'created_at'),
      ...delivery(row),
    }))
}

/** All events of this id: more than one only where sources differ. */
export function showEvents(db: Connection, id: string): ShownEvent[] {
  return db.all('SELECT seq, id, source, body, created_at FROM events WHERE id = ? ORDER BY seq', id).map((row) => ({
    id: text(row, 'id'),
    source: text(row, 'source'),
    createdAt: integer(row, 'created_at'),
    event: parseStoredEvent(text(row, 'body')) ?? null,
    deliveries: db.all('SELECT * FROM deliveries WHERE seq = ? ORDER BY sink', integer(row, 'seq')).map(delivery),
  }))
}

/** True while the row of the delivery is kept: a day. */
export function wasDelivered(db: Connection, source: string, id: string, sink: string): boolean {
  const row = db.get(
    `SELECT 1 FROM events e JOIN deliveries d ON d.seq = e.seq WHERE e.source = ? AND e.id = ? AND d.sink = ? AND d.state = 'delivered'`,
    source,
    id,
    sink,
  )
  return row !== undefined
}

function delivery(row: Row): Delivery {
  return {
    sink: text(row, 'sink'),
    state: deliveryState(text(row, 'state')),
    attempts: integer(row, 'attempts'),
    nextAttemptAt: optionalInteger(row, 'next_attempt_at'),
    expiresAt: integer(row, 'expires_at'),
    lastCode: optionalText(row, 'last_code'),
    lastDetail: optionalText(row, 'last_detail'),
    settledAt: optionalInteger(row, 'settled_at'),
  }
}

/** The table allows no other. */
const deliveryState = (state: string): DeliveryState => (state === 'delivered' || state === 'dead' ? state : 'pending')
