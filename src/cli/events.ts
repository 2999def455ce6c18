import { setTimeout as sleep } from 'node:timers/promises'
import { ForeshockError } from '../../sinks/error.ts'
import type { ApprovalStates } from '../approvals/known-states.ts'
import { digestOf } from '../lifecycle/digest.ts'
import type { EventsDocument, ScheduledEvent } from '../lifecycle/model.ts'
import { namesThisVm } from '../lifecycle/names.ts'
import { span } from '../span.ts'
import { agent } from '../version.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { stopSignal } from './signals.ts'
import { table } from './table.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('events')
    .description('what is scheduled now, as a person would want to read it')
    .option('--config <file>', 'configuration file')
    .option('--watch', 'show it anew at every poll, until interrupted')
    .option('--json', 'machine-readable output: one JSON object a look')
    .action((options: { config?: string; watch?: boolean; json?: boolean }) =>
      run(async () => {
        const { loadConfig } = await import('../config/load.ts')
        const { connectImds } = await import('../imds/connect.ts')
        const { readInstance } = await import('../imds/instance.ts')
        const { readApprovalStates } = await import('../approvals/known-states.ts')
        const config = await loadConfig(options.config, process.env)
        const client = connectImds({ ...config.imds, agent, env: process.env })
        const stop = stopSignal(undefined, process.stdout)
        try {
          let vmName: string | null = null
          for (;;) {
            const answer = await client.getEvents({ signal: stop.signal })
            if (answer.kind === 'failure' && options.watch !== true) {
              throw new ForeshockError('unreachable', `IMDS at ${config.imds.endpoint} gave no document: ${answer.detail}`)
            }
            if (vmName === null) {
              const instance = await readInstance(client, { signal: stop.signal })
              vmName = config.identity.vmName ?? (instance.kind === 'instance' ? instance.instance.vmName : null)
            }
            if (answer.kind === 'document') {
              const keys = answer.document.events.map(({ eventId }) => eventId.toLowerCase())
              show(answer.document, vmName, readApprovalStates(config.state.path, keys), options)
            }
            if (answer.kind === 'failure') process.stderr.write(`IMDS gave no document: ${answer.detail}\n`)
            if (options.watch !== true) return exit.done
            await sleep(config.imds.pollIntervalMs, undefined, { signal: stop.signal })
          }
        } catch (error) {
          if (stop.signal.aborted) return exit.done
          throw error
        } finally {
          stop.release()
          await client.close()
        }
      }),
    )
}

function show(
  document: EventsDocument,
  vmName: string | null,
  approvals: ApprovalStates,
  { watch, json }: { watch?: boolean; json?: boolean },
): void {
  if (json === true) {
    const { incarnation, events } = document
    const told = events.map((event) => ({
      ...event,
      affectsThisVm: namesThisVm(event.resources, vmName),
      digest: digestOf(event),
      approval: approvals.get(event.eventId.toLowerCase()) ?? null,
    }))
    process.stdout.write(`${JSON.stringify({ incarnation, vmName, events: told })}\n`)
    return
  }
  // Home and clear to the end, on a terminal only: a pipe gets one table after the other.
  if (watch === true && process.stdout.isTTY) process.stdout.write('\u001B[H\u001B[J')
  process.stdout.write(`${describe(document, vmName, approvals)}\n`)
}

function describe({ events, broken, incarnation }: EventsDocument, vmName: string | null, approvals: ApprovalStates): string {
  const head = `${vmName ?? 'this VM'}, incarnation ${incarnation ?? 'unknown'}`
  const odd = broken.map((entry) => `an entry that cannot be read: ${entry.problem}`)
  if (events.length === 0) return [`${head}: nothing is scheduled`, ...odd].join('\n')
  const rows = events.map((event) => [
    event.eventType,
    event.eventStatus,
    when(event),
    lasts(event.durationInSeconds),
    event.eventSource ?? '',
    whom(event, vmName),
    approvals.get(event.eventId.toLowerCase()) ?? '',
    event.eventId,
    event.description ?? '',
  ])
  const headings = ['type', 'status', 'not before', 'lasts', 'by', 'resources', 'approval', 'event id', 'description']
  return [head, table(headings, rows), ...odd].join('\n')
}

function when({ notBefore, eventStatus }: ScheduledEvent): string {
  if (notBefore === null) return eventStatus === 'Started' ? 'now' : 'unknown'
  const left = Date.parse(notBefore) - Date.now()
  return left >= 0 ? `in ${span(left)} (${notBefore})` : `${span(left)} ago (${notBefore})`
}

const lasts = (seconds: number | null): string => (seconds === null || seconds < 0 ? 'unknown' : span(seconds * 1000))

function whom({ resources }: ScheduledEvent, vmName: string | null): string {
  // The own name first: of a hundred it is the one that matters here.
  const isMine = (name: string): boolean => namesThisVm([name], vmName) === true
  const ordered = [...resources.filter(isMine).map((name) => `${name} (this VM)`), ...resources.filter((name) => !isMine(name))]
  return ordered.length > 3 ? `${ordered.slice(0, 3).join(', ')} and ${ordered.length - 3} more` : ordered.join(', ')
}
