import { existsSync } from 'node:fs'
import { ForeshockError } from '../../sinks/error.ts'
import { attachDatabase } from '../outbox/database.ts'
import { createStore } from '../outbox/store.ts'
import { parseStoredEvent } from '../outbox/stored-event.ts'

/** How the approval of an event stands, for people: `held by anna`, `approved`, `refused: state_changed`, `under way`. */
export type ApprovalStates = ReadonlyMap<string, string>

/** By folded EventId, from the state file beside the forwarder that owns it. Without a file that can be read nothing is known. */
export function readApprovalStates(statePath: string, eventKeys: readonly string[]): ApprovalStates {
  const states = new Map<string, string>()
  if (eventKeys.length === 0 || !existsSync(statePath)) return states
  try {
    const database = attachDatabase(statePath)
    try {
      const store = createStore(database, { now: Date.now })
      for (const { eventKey, event } of store.lastApprovals(eventKeys)) {
        const code = event === null ? undefined : parseStoredEvent(event)?.data['code']
        states.set(eventKey, typeof code !== 'string' ? 'under way' : code === 'ok' ? 'approved' : `refused: ${code}`)
      }
      for (const { eventKey, requestedBy } of store.holds()) {
        if (eventKeys.includes(eventKey)) states.set(eventKey, `held by ${requestedBy ?? 'somebody'}`)
      }
    } finally {
      database.close()
    }
  } catch (error) {
    // Events are shown all the same: to a user who may not read the state file, or beside one of another version.
    if (!(error instanceof ForeshockError)) throw error
  }
  return states
}
