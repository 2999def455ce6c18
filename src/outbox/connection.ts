import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { ForeshockError } from '../../sinks/error.ts'

export type Row = Record<string, SQLOutputValue>

/** The four things that our statements do. Every statement is prepared once; its SQL text is the key. */
export interface Connection {
  all(sql: string, ...parameters: SQLInputValue[]): Row[]
  get(sql: string, ...parameters: SQLInputValue[]): Row | undefined
  /** Gives the number of rows that it changed. */
  run(sql: string, ...parameters: SQLInputValue[]): number
  /** All or nothing, durable when it returns. Not to be nested. */
  transaction<T>(work: () => T): T
  /** All or nothing, but a power failure may take it back. For what is harmless to do again; spares a flush of the disk. */
  relaxedTransaction<T>(work: () => T): T
}

/** `translate` turns what SQLite throws into what is thrown instead. */
export function connect(handle: DatabaseSync, translate: (error: unknown) => unknown): Connection {
  const prepared = new Map<string, StatementSync>()
  const statement = (sql: string): StatementSync => {
    let found = prepared.get(sql)
    if (found === undefined) {
      found = handle.prepare(sql)
      prepared.set(sql, found)
    }
    return found
  }
  const guarded = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw translate(error)
    }
  }

  const transaction = <T>(work: () => T): T => {
    // IMMEDIATE: a read lock that is upgraded later fails at once where another process wrote in between; this one waits its turn.
    guarded(() => statement('BEGIN IMMEDIATE').run())
    try {
      const result = work()
      guarded(() => statement('COMMIT').run())
      return result
    } catch (error) {
      // A full disk or an I/O error has already rolled back by itself.
      if (handle.isTransaction) guarded(() => statement('ROLLBACK').run())
      throw error
    }
  }

  return {
    all: (sql, ...parameters) => guarded(() => statement(sql).all(...parameters)),
    get: (sql, ...parameters) => guarded(() => statement(sql).get(...parameters)),
    run: (sql, ...parameters) => guarded(() => Number(statement(sql).run(...parameters).changes)),
    transaction,
    relaxedTransaction(work) {
      // In WAL mode the file stays consistent all the same. Source: https://www.sqlite.org/pragma.html#pragma_synchronous
      guarded(() => handle.exec('PRAGMA synchronous = NORMAL'))
      try {
        return transaction(work)
      } finally {
        guarded(() => handle.exec('PRAGMA synchronous = FULL'))
      }
    },
  }
}

export function integer(row: Row, column: string): number {
  const value = row[column]
  return typeof value === 'number' ? value : mistyped(column, 'an integer', value)
}

export function text(row: Row, column: string): string {
  const value = row[column]
  return typeof value === 'string' ? value : mistyped(column, 'text', value)
}

export const optionalInteger = (row: Row, column: string): number | null => (row[column] === null ? null : integer(row, column))
export const optionalText = (row: Row, column: string): string | null => (row[column] === null ? null : text(row, column))

function mistyped(column: string, expected: string, value: unknown): never {
  throw new ForeshockError(
    'state_unusable',
    `expected ${expected} in the column ${column} of the state file, got ${value === undefined ? 'nothing' : typeof value}: stop foreshock and move the state file away`,
  )
}
