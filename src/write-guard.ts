import type { SinkLog } from '../sinks/contract.ts'
import { ForeshockError } from '../sinks/error.ts'

/** Writes that may fail for a while, because the disk is full or another process holds the file. */
export interface WriteGuard {
  /** Runs a write. A store that fails is told once per outage; whoever writes tries again later, since nothing in memory has moved. */
  attempt(write: () => void): void
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
        if (!(error instanceof ForeshockError && (error.code === 'state_unusable' || error.code === 'state_locked'))) throw error
        if (error.message !== problem)
          log.error({ code: error.code }, `the state file cannot be written, the next poll tries again: ${error.message}`)
        problem = error.message
        return
      }
      if (problem !== null) log.info({}, 'the state file can be written again')
      problem = null
    },
    problem: () => problem,
  }
}
