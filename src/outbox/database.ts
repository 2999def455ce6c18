import { closeSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SinkLog } from '../../sinks/contract.ts'
import { ForeshockError } from '../../sinks/error.ts'
import { connect, type Connection } from './connection.ts'
import { inspect } from './inspect.ts'
import { acquireLock } from './lock.ts'
import { migrate, migrations } from './schema.ts'
import { setAside, type SetAside } from './set-aside.ts'
import { explained, isDamage } from './sqlite-error.ts'

/** An open state file. */
export interface Database {
  readonly path: string
  readonly db: Connection
  /** What stood at `path` and could not be used; a fresh file was made in its place. */
  readonly setAside?: SetAside
  /** Idempotent. */
  close(): void
}

/** A writer of another process holds its lock for milliseconds; waiting blocks the event loop, so not for long. */
const busyTimeoutMs = 2000

/**
 * Opens the state file for the one forwarder that owns it, creating it (0600) and its directory (0700) where they are missing. A file that is
 * damaged, foreign or of a newer version is set aside.
 *
 * Damage that shows only while running makes that statement and all later ones throw one and the same `state_unusable`, calls `onDamage` once,
 * and sets the file aside at `close()`: the forwarder ends, and the next start begins with a fresh file instead of meeting the same damage.
 *
 * Throws `state_locked` where another forwarder owns it, `state_unusable` where it can neither be used nor set aside.
 */
export function openDatabase(
  path: string,
  options: { readonly now: () => number; readonly log: SinkLog; readonly onDamage?: (error: ForeshockError) => void },
): Database {
  const { now, log } = options
  return explaining(path, () => {
    makeFolder(dirname(resolve(path)))
    const real = resolved(path)
    const release = acquireLock(real)
    try {
      const { aside, version } = clearTheWay(real, now())
      if (aside !== undefined) {
        log.error(
          { path, setAside: aside.path, reason: aside.reason },
          `the state file was ${aside.kind} and is set aside; a fresh one takes its place: what waited in the old one is not sent, and events that are still scheduled are told again under the same ids. ` +
            (aside.kind === 'newer' ? 'To use it, install the newer foreshock and move it back' : 'Keep it to look into it, or delete it'),
        )
      }
      createFile(real)
      const handle = openHandle(real)
      try {
        configure(handle, real)
        migrate(handle, version)
      } catch (error) {
        handle.close()
        throw error
      }

      let damage: ForeshockError | undefined
      const db = connect(handle, (error) => {
        if (damage !== undefined) return damage
        if (!isDamage(error)) return explained(error, path)
        damage = new ForeshockError(
          'state_unusable',
          `expected a sound state file ${path}, got damage while running: start foreshock again; it sets the file aside and begins a fresh one`,
          { cause: error },
        )
        options.onDamage?.(damage)
        return damage
      })
      const sound = refusing(db, () => damage)
      return {
        path,
        db: sound,
        ...(aside === undefined ? {} : { setAside: aside }),
        close() {
          if (handle.isOpen && damage !== undefined) {
            const { path: target } = setAside(real, 'damaged', 'damage met while running', now())
            log.error({ path, setAside: target }, 'the state file was damaged and is set aside; the next start makes a fresh one')
          }
          if (handle.isOpen) handle.close()
          release()
        },
      }
    } catch (error) {
      release()
      throw error
    }
  })
}

/**
 * Opens the state file beside the forwarder that may own it, for commands that look into the outbox or change it. Nothing is created, migrated
 * or set aside. Throws `state_unusable` where there is no such file, or not of exactly this version.
 */
export function attachDatabase(path: string): Database {
  return explaining(path, () => {
    const real = resolved(path)
    if (sizeOf(real) === undefined) {
      throw new ForeshockError(
        'state_unusable',
        `expected a state file, got nothing at ${path}: check state.path, or run the forwarder first`,
      )
    }
    const handle = openHandle(real)
    try {
      const finding = inspect(handle)
      if (finding.kind !== 'ours') {
        throw new ForeshockError(
          'state_unusable',
          `the state file ${path} is ${finding.kind}: ${finding.reason}; the forwarder sets it aside when it starts`,
        )
      }
      if (finding.version !== migrations.length) {
        throw new ForeshockError(
          'state_unusable',
          `expected the state file ${path} to have schema version ${migrations.length}, got ${finding.version}: start the forwarder of this version once`,
        )
      }
      configure(handle, real)
    } catch (error) {
      handle.close()
      throw error
    }
    return {
      path,
      db: connect(handle, (error) =>
        isDamage(error)
          ? new ForeshockError('state_unusable', `the state file ${path} is damaged: restart the forwarder, which sets it aside`, {
              cause: error,
            })
          : explained(error, path),
      ),
      close() {
        if (handle.isOpen) handle.close()
      },
    }
  })
}

/** Sets aside whatever stands at `path` and is no state file of a version that we know. `version` is that of what is left: 0 is nothing. */
function clearTheWay(path: string, now: number): { readonly aside?: SetAside; readonly version: number } {
  if ((sizeOf(path) ?? 0) === 0) {
    if ((sizeOf(`${path}-wal`) ?? 0) === 0) return { version: 0 }
    return { aside: setAside(path, 'damaged', 'expected a database, got only its write-ahead log', now), version: 0 }
  }
  const handle = openHandle(path)
  try {
    const finding = inspect(handle)
    if (finding.kind === 'ours') return { version: finding.version }
    // Renamed while it is open: closing deletes the write-ahead log of this name, and with it what could still be read of a damaged file.
    return { aside: setAside(path, finding.kind, finding.reason, now), version: 0 }
  } finally {
    handle.close()
  }
}

function openHandle(path: string): DatabaseSync {
  return new DatabaseSync(path, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
}

function configure(handle: DatabaseSync, path: string): void {
  // Takes effect only in an empty file; `prune` gives the pages of a past backlog back to the file system.
  handle.exec('PRAGMA auto_vacuum = INCREMENTAL')
  const mode = handle.prepare('PRAGMA journal_mode = WAL').get()
  if (mode?.['journal_mode'] !== 'wal') {
    throw new ForeshockError(
      'state_unusable',
      `expected a file system with shared memory and locks for ${path}, got one without: set state.path to a local disk`,
    )
  }
  // FULL: a commit is on the disk when it returns, also through a power failure.
  handle.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216')
}

/** Not `recursive`: that loops for ever where a folder can neither be made nor is there, as under /proc. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return
  makeFolder(dirname(folder))
  mkdirSync(folder, { mode: 0o700 })
}

function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Through symbolic links: SQLite puts the log beside the file that they lead to. */
function resolved(path: string): string {
  return sizeOf(path) === undefined ? resolve(path) : realpathSync(path)
}

/** Size in bytes, undefined where there is nothing. Throws `state_unusable` where something else than a file stands. */
function sizeOf(path: string): number | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isFile()) return found?.size
  throw new ForeshockError(
    'state_unusable',
    `expected state.path to name a file, got ${found.isDirectory() ? 'the directory' : 'something else'} ${path}: add a file name, such as state.db`,
  )
}

function explaining<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw explained(error, path)
  }
}

/** After damage nothing is read or written any more: what such a file says next may look right and be wrong. */
function refusing(db: Connection, damage: () => ForeshockError | undefined): Connection {
  const check = (): void => {
    const found = damage()
    if (found !== undefined) throw found
  }
  return {
    all: (...call) => (check(), db.all(...call)),
    get: (...call) => (check(), db.get(...call)),
    run: (...call) => (check(), db.run(...call)),
    transaction: (work) => (check(), db.transaction(work)),
    relaxedTransaction: (work) => (check(), db.relaxedTransaction(work)),
  }
}
