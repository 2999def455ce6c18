import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ForeshockError } from '../../sinks/error.ts'
import { isBusy, isDamage } from './sqlite-error.ts'

/**
 * One forwarder per state file. The lock is that of a second, empty SQLite file `{path}.lock` with an exclusive transaction that stays open:
 * the kernel releases it however the process ends, and commands that only look into the outbox are not kept out.
 *
 * Throws `state_locked`. Gives the release, which is idempotent.
 */
export function acquireLock(path: string): () => void {
  const handle = new DatabaseSync(`${path}.lock`, { timeout: 0 })
  try {
    handle.exec('BEGIN EXCLUSIVE')
    // By name: opening and closing the file here would drop the POSIX locks that this process holds on it.
    chmodSync(`${path}.lock`, 0o600)
  } catch (error) {
    handle.close()
    if (isBusy(error)) {
      throw new ForeshockError(
        'state_locked',
        `expected to be the only forwarder with the state file ${path}, got another one that runs with it: stop that one (fuser ${path}.lock names it), or give each a state.path of its own`,
        { cause: error },
      )
    }
    if (isDamage(error)) {
      throw new ForeshockError('state_unusable', `expected ${path}.lock to be empty, got a file that is not ours: delete it`, {
        cause: error,
      })
    }
    throw error
  }
  return () => {
    if (handle.isOpen) handle.close()
  }
}
