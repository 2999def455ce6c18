import type { DatabaseSync } from 'node:sqlite'
import { applicationId, columnsOf, expectedColumns, migrations } from './schema.ts'
import { isDamage } from './sqlite-error.ts'

/** What an open file turned out to be. `version` 0 is an empty file, to be filled. */
export type Finding = { readonly kind: 'ours'; readonly version: number } | { readonly kind: Unusable; readonly reason: string }
export type Unusable = 'damaged' | 'foreign' | 'newer'

/**
 * Up to this size the structure of the whole file is checked, which reads all of it: about a tenth of a second from memory, about a second
 * from a slow cloud disk. An outbox gets this large only when a sink is down for days.
 */
const fullCheckBytes = 64 * 1024 * 1024

/** Reads only, so that a file of someone else stays as it was. Throws what is neither content nor damage: permissions, a lock, the disk. */
export function inspect(handle: DatabaseSync): Finding {
  try {
    const application = pragma(handle, 'application_id')
    const version = pragma(handle, 'user_version')
    const found = columnsOf(handle)
    if (application === 0 && version === 0 && found.size === 0) return { kind: 'ours', version: 0 }
    if (application !== applicationId) {
      return {
        kind: 'foreign',
        reason: `expected the application id ${applicationId}, got ${application} with ${found.size} columns in all`,
      }
    }
    if (version > migrations.length) {
      return { kind: 'newer', reason: `expected schema version ${migrations.length} or below, got ${version}` }
    }
    const missing = [...expectedColumns(version)].filter((column) => !found.has(column))
    if (missing.length > 0) {
      return { kind: 'damaged', reason: `expected the columns of schema version ${version}, got a file without ${missing.join(', ')}` }
    }
    const problem = structureProblem(handle)
    return problem === undefined ? { kind: 'ours', version } : { kind: 'damaged', reason: `expected a sound file, got: ${problem}` }
  } catch (error) {
    if (!isDamage(error) || !(error instanceof Error)) throw error
    return { kind: 'damaged', reason: `expected a sound SQLite database, got: ${error.message}` }
  }
}

/** In a larger file only the tables without which nothing starts are checked; damage in the rest is met, and handled, when it is read. */
function structureProblem(handle: DatabaseSync): string | undefined {
  const checks =
    pragma(handle, 'page_count') * pragma(handle, 'page_size') <= fullCheckBytes
      ? ['quick_check(1)']
      : [`quick_check('state')`, `quick_check('sinks')`]
  for (const check of checks) {
    const result = Object.values(handle.prepare(`PRAGMA ${check}`).get() ?? {})[0]
    if (result !== 'ok') return String(result).replaceAll(/\s+/g, ' ')
  }
  return undefined
}

function pragma(handle: DatabaseSync, name: string): number {
  return Number(Object.values(handle.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}
