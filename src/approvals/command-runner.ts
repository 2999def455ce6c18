import type { CloudEvent } from '../../sinks/cloud-event.ts'
import type { SinkLog } from '../../sinks/contract.ts'
import type { WaitingCommand } from '../outbox/commands.ts'
import type { Store } from '../outbox/store.ts'
import type { Approver } from './approver.ts'
import { unreadable, type ApprovalRequest } from './request.ts'

const lookMs = 250

/** What the forwarder tells the command that waits. */
interface CommandAnswer {
  readonly code: string
  readonly detail: string
  /** null where nothing is told to the sinks. */
  readonly event: CloudEvent | null
}

export interface CommandRunner {
  /** Idempotent. */
  start(): void
  /** Resolves when nothing is under way. Idempotent. */
  stop(): Promise<void>
}

/**
 * Carries out what commands on this machine write into the state file: whoever may write there owns this program anyway. One look costs a pragma;
 * the table is read when another process has changed the file.
 */
export function createCommandRunner(options: {
  readonly approver: Approver
  readonly store: Pick<Store, 'revision' | 'waitingCommands' | 'answerCommand' | 'releaseHold'>
  readonly log: SinkLog
  /** What fails for a reason that is none of the gate's. */
  readonly onFailure: (error: unknown) => void
}): CommandRunner {
  const { approver, store, log, onFailure } = options
  const stopping = new AbortController()
  const underWay = new Map<number, Promise<void>>()
  let timer: NodeJS.Timeout | undefined
  let revision = ''

  const look = (): void => {
    try {
      const current = store.revision()
      if (current === revision) return
      for (const command of store.waitingCommands()) if (!underWay.has(command.seq)) begin(command)
      revision = current
    } catch (error) {
      onFailure(error)
    }
  }

  const begin = (command: WaitingCommand): void => {
    const done = carryOut(command)
      .then((answer) => store.answerCommand(command.seq, JSON.stringify(answer)))
      .catch((error: unknown) => {
        // Looked at again, whether the file changes or not.
        revision = ''
        if (!stopping.signal.aborted) onFailure(error)
      })
      .finally(() => underWay.delete(command.seq))
    underWay.set(command.seq, done)
  }

  const carryOut = async (command: WaitingCommand): Promise<CommandAnswer> => {
    if (command.command === 'release') {
      const held = store.releaseHold(command.eventId.toLowerCase())
      log.info({ eventId: command.eventId, requestedBy: command.requestedBy }, held ? 'a hold is released' : 'there was no hold to release')
      return { code: 'ok', detail: held ? 'the hold is released' : 'there was no hold', event: null }
    }
    const decided = await approver.decide({
      request: requestOf(command),
      delivery: String(command.seq),
      last: true,
      signal: stopping.signal,
    })
    if (decided.kind === 'unread') return { code: 'relay_failed', detail: decided.detail, event: null }
    const [event = null] = decided.events
    return { code: decided.codes[0] ?? 'ok', detail: decided.detail, event }
  }

  return {
    start() {
      timer ??= setInterval(look, lookMs)
    },
    async stop() {
      stopping.abort()
      clearInterval(timer)
      await Promise.all(underWay.values())
    },
  }
}

function requestOf({ command, eventId, digest, requestedBy, reason, expiresAt }: WaitingCommand): ApprovalRequest {
  return {
    ...unreadable('command', 0, null, null),
    wanted: [{ command, eventId, digest, resources: null }],
    requestedBy,
    reason,
    validity: { issuedAt: null, notBefore: null, expiresAt },
  }
}
