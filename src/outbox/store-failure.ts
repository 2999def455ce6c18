import { ForeshockError } from '../../sinks/error.ts'

/** The disk is full, the file damaged, or another process kept the write lock: a fault of the machine, not of the program. */
export function isStoreFailure(error: unknown): error is ForeshockError {
  return error instanceof ForeshockError && (error.code === 'state_unusable' || error.code === 'state_locked')
}
