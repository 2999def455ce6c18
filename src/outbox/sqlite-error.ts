import { ForeshockError } from '../../sinks/error.ts'

/** Primary result codes of SQLite. Source: https://www.sqlite.org/rescode.html */
const resultCode = {
  perm: 3,
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

/** What a person can do about a result code or a file system error that is no fault of this program. */
const cures = new Map<number | string, string>([
  [resultCode.perm, 'give this user read and write permission on the file and its directory'],
  [resultCode.readOnly, 'give this user write permission on the file and its directory, on a file system that is mounted writable'],
  [resultCode.ioError, 'check the disk and the kernel log'],
  [resultCode.full, 'free some space on this file system'],
  [resultCode.cannotOpen, 'give this user read and write permission on the directory, and check that file descriptors are left'],
  ['EACCES', 'give this user read and write permission on the directory, or set state.path to a place of its own'],
  ['EPERM', 'give this user read and write permission on the directory, or set state.path to a place of its own'],
  ['EROFS', 'set state.path to a file system that is mounted writable'],
  ['ENOSPC', 'free some space on this file system'],
  ['EDQUOT', 'free some space: the quota of this user is used up'],
  ['ENOTDIR', 'set state.path to a file whose parent is a directory'],
  ['EEXIST', 'set state.path to a file whose parent is a directory'],
  ['ELOOP', 'mend the symbolic links of state.path'],
  ['ENAMETOOLONG', 'set state.path to a shorter name'],
  ['ENOENT', 'set state.path to a place where directories can be created'],
  ['EIO', 'check the disk and the kernel log'],
])

/** The primary result code, where `error` comes from SQLite. The extended code carries it in its low byte. */
function resultCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return error.errcode & 0xff
}

/** The content of the file is not what SQLite wrote: neither waiting nor another permission will mend it. */
export function isDamage(error: unknown): boolean {
  const code = resultCodeOf(error)
  return code === resultCode.corrupt || code === resultCode.notADatabase
}

/** Another connection holds the lock that was asked for. */
export function isBusy(error: unknown): boolean {
  const code = resultCodeOf(error)
  return code === resultCode.busy || code === resultCode.locked
}

/**
 * What the machine did to us (permission, space, disk, lock) as a `ForeshockError` that names the cure. Anything else, a fault of this
 * program, comes back as it is.
 */
export function explained(error: unknown, path: string): unknown {
  if (!(error instanceof Error)) return error
  if (isBusy(error)) {
    return new ForeshockError('state_locked', `the state file ${path} is busy: another command is writing to it; try again`, {
      cause: error,
    })
  }
  const code = resultCodeOf(error) ?? ('code' in error && typeof error.code === 'string' ? error.code : '')
  const cure = cures.get(code)
  if (cure === undefined) return error
  return new ForeshockError('state_unusable', `expected to read and write the state file ${path}, got "${error.message}": ${cure}`, {
    cause: error,
  })
}
