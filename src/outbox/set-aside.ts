import { existsSync, renameSync } from 'node:fs'
import type { Unusable } from './inspect.ts'

/** A state file that could not be used, under its new name, and why. */
export interface SetAside {
  readonly path: string
  readonly kind: Unusable
  /** What was expected and what was got. */
  readonly reason: string
}

/**
 * Renames the file with its write-ahead log and shared memory to `{path}.{kind}-{UTC time}`, so that nothing is lost and a fresh one can be
 * made. The file goes first: a log without its file, should we be killed here, is recognised at the next start; the other way round, an old
 * state would pass for the newest.
 */
export function setAside(path: string, kind: Unusable, reason: string, now: number): SetAside {
  const stamp = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const base = `${path}.${kind}-${stamp}`
  let target = base
  for (let copy = 2; existsSync(target) || existsSync(`${target}-wal`); copy += 1) target = `${base}-${copy}`
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(path + suffix)) renameSync(path + suffix, target + suffix)
  }
  return { path: target, kind, reason }
}
