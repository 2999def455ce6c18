import { access, constants, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Sink } from '../sinks/contract.ts'
import { ForeshockError } from '../sinks/error.ts'
import type { ImdsClient } from './imds/client.ts'
import { readInstance } from './imds/instance.ts'
import { firstTimeoutMs } from './imds/timeouts.ts'
import { namesThisVm } from './lifecycle/names.ts'
import { attachDatabase } from './outbox/database.ts'
import { createStore } from './outbox/store.ts'

/** What one look came to. `note`: nothing is wrong, but it is worth knowing. */
export interface Finding {
  readonly part: string
  readonly state: 'ok' | 'note' | 'bad'
  readonly detail: string
  readonly cure?: string
}

const secondMs = 1000
/** Azure's tokens and signed approvals bear about a minute. */
const clockBoundMs = 60 * secondMs

/** IMDS, instance metadata, and whether they agree on the name of this VM. */
export async function examineImds(
  client: ImdsClient,
  configured: { readonly vmName?: string | undefined; readonly source?: string | undefined },
): Promise<Finding[]> {
  const begun = performance.now()
  const answer = await client.getEvents({ timeoutMs: firstTimeoutMs })
  const took = Math.round(performance.now() - begun)
  if (answer.kind !== 'document') {
    const detail = answer.kind === 'failure' ? answer.detail : 'no document'
    return [
      {
        part: 'imds',
        state: 'bad',
        detail,
        cure: 'run this on an Azure VM, or set imds.endpoint; look for a proxy or a firewall rule for 169.254.169.254',
      },
    ]
  }
  const { incarnation, events, broken } = answer.document
  const odd = broken.length === 0 ? '' : `, ${broken.length} entries that cannot be read`
  const findings: Finding[] = [
    {
      part: 'imds',
      state: 'ok',
      detail: `a document in ${took} ms, incarnation ${incarnation ?? 'unknown'}, ${events.length} events${odd}`,
    },
  ]
  const instance = await readInstance(client)
  const vmName = configured.vmName ?? (instance.kind === 'instance' ? instance.instance.vmName : null)
  if (instance.kind === 'failure') {
    const known = configured.vmName !== undefined && configured.source !== undefined
    findings.push({
      part: 'identity',
      state: known ? 'note' : 'bad',
      detail: `instance metadata: ${instance.detail}`,
      ...(!known && { cure: 'set identity.source and identity.vmName in the configuration' }),
    })
  } else {
    findings.push({ part: 'identity', state: 'ok', detail: `${vmName ?? 'no name'}, ${instance.instance.resourceId ?? 'no resource id'}` })
  }
  findings.push(
    nameMatch(
      events.map(({ resources }) => resources),
      vmName,
    ),
  )
  return findings
}

function nameMatch(resources: readonly (readonly string[])[], vmName: string | null): Finding {
  if (vmName === null) {
    return {
      part: 'name',
      state: 'bad',
      detail: 'the name of this VM is not known, so no event can be told to be its own',
      cure: 'set identity.vmName',
    }
  }
  const mine = resources.filter((names) => namesThisVm(names, vmName) === true).length
  const detail = resources.length === 0 ? 'no event to compare with now' : `${mine} of ${resources.length} events name this VM`
  return { part: 'name', state: resources.length > 0 && mine === 0 ? 'note' : 'ok', detail: `${vmName}: ${detail}` }
}

/** The state file: there and readable, or its folder writable. Nothing is created. */
export async function examineState(path: string, now: () => number): Promise<Finding[]> {
  const found = await stat(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (found === undefined) return [await examineFolder(path)]
  try {
    const database = attachDatabase(path)
    try {
      const summaries = createStore(database, { now }).summarize()
      const waits = summaries.reduce((sum, { pending }) => sum + pending, 0)
      const dead = summaries.reduce((sum, one) => sum + one.dead, 0)
      const halted = summaries.flatMap(({ name, haltedReason }) => (haltedReason === null ? [] : [`${name} is halted: ${haltedReason}`]))
      const cure = 'see foreshock outbox list, then outbox replay'
      return [
        { part: 'state', state: 'ok', detail: `${path}: ${waits} deliveries wait` },
        ...(dead > 0 ? [{ part: 'outbox', state: 'note', detail: `${dead} dead letters`, cure } as const] : []),
        ...halted.map((detail): Finding => ({
          part: 'outbox',
          state: 'bad',
          detail,
          cure: 'mend it, then foreshock outbox replay --sink NAME',
        })),
      ]
    } finally {
      database.close()
    }
  } catch (error) {
    if (!(error instanceof ForeshockError)) throw error
    return [
      {
        part: 'state',
        state: 'bad',
        detail: error.message,
        cure: 'the forwarder sets such a file aside when it starts; keep it if you need what waited in it',
      },
    ]
  }
}

async function examineFolder(path: string): Promise<Finding> {
  let folder = dirname(path)
  for (;;) {
    try {
      await access(folder, constants.W_OK)
      return { part: 'state', state: 'ok', detail: `${path} will be made at the first start` }
    } catch (error) {
      const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
      if (missing && folder !== dirname(folder)) {
        folder = dirname(folder)
        continue
      }
      return {
        part: 'state',
        state: 'bad',
        detail: `${path} cannot be made: ${folder} is not writable`,
        cure: 'set state.path to a place that this user may write to',
      }
    }
  }
}

/** The clock against the Date header of IMDS, which is the clock of the host. `remote` is that header. */
export function examineClock(remote: string | null, nowMs: number): Finding {
  const theirs = remote === null ? Number.NaN : Date.parse(remote)
  if (Number.isNaN(theirs)) return { part: 'clock', state: 'note', detail: 'IMDS sends no Date, so there is nothing to compare with' }
  const offMs = nowMs - theirs
  const detail = `${Math.abs(offMs / secondMs).toFixed(0)} s ${offMs < 0 ? 'behind' : 'ahead of'} the host`
  if (Math.abs(offMs) <= clockBoundMs) return { part: 'clock', state: 'ok', detail }
  return { part: 'clock', state: 'bad', detail, cure: 'set up time synchronisation: tokens and signed approvals are refused otherwise' }
}

/** A sink, by its own check. */
export async function examineSink(name: string, sink: Pick<Sink, 'check'>, timeoutMs: number): Promise<Finding> {
  const result = await sink.check({ signal: AbortSignal.timeout(timeoutMs) })
  const part = `sink ${name}`
  return result.ok ? { part, state: 'ok', detail: result.detail } : { part, state: 'bad', detail: result.detail, cure: result.cure }
}
