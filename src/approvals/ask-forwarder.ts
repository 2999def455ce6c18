import { existsSync, realpathSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { ForeshockError } from '../../sinks/error.ts'
import type { Command } from '../outbox/commands.ts'
import { attachDatabase } from '../outbox/database.ts'
import { acquireLock } from '../outbox/lock.ts'
import { createStore } from '../outbox/store.ts'

const lookMs = 100

const answerSchema = z.object({ code: z.string(), detail: z.string(), event: z.record(z.string(), z.unknown()).nullable() })
export type ForwarderAnswer = z.output<typeof answerSchema>

/**
 * Asks the forwarder that runs with this state file, by a row in it: it passes the same gate, and ends as an event in the same outbox, as what came
 * through the queue. Undefined where no answer came before the command expired; it is not carried out later.
 * Throws `unreachable` where no forwarder runs.
 */
export async function askForwarder(statePath: string, command: Command, now: () => number): Promise<ForwarderAnswer | undefined> {
  if (!isRunning(statePath)) {
    throw new ForeshockError(
      'unreachable',
      `no forwarder runs with the state file ${statePath}: start it, check state.path, or ask through the control queue with --via queue`,
    )
  }
  const database = attachDatabase(statePath)
  try {
    const store = createStore(database, { now })
    const seq = store.putCommand(command)
    while (now() < command.expiresAt) {
      const answer = store.commandAnswer(seq)
      if (answer !== null) return answerSchema.parse(JSON.parse(answer))
      await sleep(lookMs)
    }
    return undefined
  } finally {
    database.close()
  }
}

/** A forwarder holds the lock of its state file for as long as it lives. */
function isRunning(path: string): boolean {
  if (!existsSync(path)) return false
  try {
    acquireLock(realpathSync(path))()
    return false
  } catch (error) {
    if (error instanceof ForeshockError && error.code === 'state_locked') return true
    throw error
  }
}
