import type { SinkLog } from '../sinks/contract.ts'
import { isStoreFailure } from './outbox/store-failure.ts'

/** Writes that may fail for a while, because the disk is full or another process holds the file. */
export interface WriteGuard {
  /** Runs a write; false where the store failed. A store that fails is told once per outage; whoever writes tries again later, since nothing in memory has moved. */
  attempt(write: () => void): boolean
  /** Why the last write failed; null where it did not. */
  problem(): string | null
}

/** Only failures of the store are held back: anything else that is thrown is a fault of the program and passes. */
export function createWriteGuard(log: SinkLog): WriteGuard {
  let problem: string | null = null
  return {
    attempt(write) {
      try {
        write()
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        if (error.message !== problem)
          log.error({ code: error.code }, `the state file cannot be written, the next poll tries again: ${error.message}`)
        problem = error.message
        return false
      }
      if (problem !== null) log.info({}, 'the state file can be written again')
      problem = null
      return true
    },
    problem: () => problem,
  }
}
