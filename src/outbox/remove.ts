import { integer, text, type Connection, type Row } from './connection.ts'

/** A row of `deliveries` by its key, and the lane that it stands in. */
export interface RowKey {
  readonly seq: number
  readonly sink: string
  readonly lane: string
}

export const rowKey = (row: Row): RowKey => ({ seq: integer(row, 'seq'), sink: text(row, 'sink'), lane: text(row, 'lane') })

/** Removes deliveries, and the events that no delivery needs any longer. To be called in a transaction. */
export function removeDeliveries(db: Connection, rows: readonly RowKey[]): void {
  for (const { seq, sink } of rows) {
    db.run('DELETE FROM deliveries WHERE seq = ? AND sink = ?', seq, sink)
    db.run('DELETE FROM events WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE seq = ?)', seq, seq)
  }
}

/** The lanes of these rows, each once. */
export function lanesOf(rows: readonly RowKey[]): RowKey[] {
  return [...new Map(rows.map((row) => [JSON.stringify([row.sink, row.lane]), row])).values()]
}
