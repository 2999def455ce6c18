import type { Connection } from './connection.ts'

/** The JSON value under `key`, undefined where there is none. What it must be is for the reader to check. */
export function readState(db: Connection, key: string): unknown {
  const row = db.get('SELECT value FROM state WHERE key = ?', key)
  if (typeof row?.['value'] !== 'string') return undefined
  const value: unknown = JSON.parse(row['value'])
  return value
}

/** `undefined` forgets the key. */
export function writeState(db: Connection, key: string, value: unknown): void {
  if (value === undefined) {
    db.run('DELETE FROM state WHERE key = ?', key)
    return
  }
  db.run('INSERT INTO state (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', key, JSON.stringify(value))
}
