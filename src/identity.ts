import { setTimeout as sleep } from 'node:timers/promises'
import type { SinkLog } from '../sinks/contract.ts'
import type { Identity } from './events/identity.ts'

/** Metadata changes with a redeploy (other domains) and with tags; both are rare. */
const refreshMs = 15 * 60_000
const retryMs = 60_000

export interface IdentityOptions {
  /** Reads instance metadata, with patience. Rejects only with the reason of `signal`. */
  readonly read: (signal: AbortSignal) => Promise<{ ok: true; identity: Identity } | { ok: false; detail: string }>
  /** `identity` of the configuration: wins over what metadata says. */
  readonly configured: { readonly source?: string | undefined; readonly vmName?: string | undefined }
  /** As it was when this machine last ran. */
  readonly remembered: Identity | null
  readonly now: () => number
  readonly log: SinkLog
}

export interface IdentityKeeper {
  /** Who this VM is; null while that is not known and waiting for it is still right. */
  current(): Identity | null
  start(): void
  stop(): Promise<void>
}

/**
 * Who this VM is. The source of every event depends on it, so publishing waits for instance metadata, but not for long: a Preempt gives 30 s.
 * `current()` therefore answers null for a grace after it was first asked for, and then gives what was remembered or configured.
 */
export function createIdentity({ read, configured, remembered, now, log }: IdentityOptions): IdentityKeeper {
  const controller = new AbortController()
  const graceMs = remembered !== null || configured.source !== undefined ? 2_000 : 10_000
  let known: Identity | null = null
  let askedAt: number | undefined
  let running: Promise<void> | undefined

  const adopt = (identity: Identity, from: string): Identity => {
    const adopted = { ...identity, vmName: configured.vmName ?? identity.vmName, source: configured.source ?? identity.source }
    if (JSON.stringify(adopted) !== JSON.stringify(known)) log.info({ vm: adopted.vmName, vmId: adopted.vmId, from }, 'this VM is known')
    known = adopted
    return adopted
  }

  const keepFresh = async (): Promise<void> => {
    const { signal } = controller
    for (;;) {
      const answer = await read(signal)
      if (answer.ok) adopt(answer.identity, 'instance metadata')
      else log.warn({ reason: answer.detail }, 'instance metadata cannot be read')
      await sleep(answer.ok ? refreshMs : retryMs, undefined, { signal })
    }
  }

  return {
    current() {
      if (known !== null) return known
      askedAt ??= now()
      if (now() - askedAt < graceMs) return null
      if (remembered !== null) return adopt(remembered, 'the state file')
      log.warn({}, 'this VM is not known: instance metadata cannot be read; set identity.source and identity.vmName in the configuration')
      return adopt(unidentified, 'the configuration')
    },
    start() {
      running ??= keepFresh().catch((error: unknown) => {
        if (!controller.signal.aborted) throw error
      })
    },
    async stop() {
      controller.abort()
      await running
    },
  }
}

const unidentified: Identity = {
  vmName: null,
  vmId: null,
  resourceId: null,
  scaleSetId: null,
  source: null,
  location: null,
  zone: null,
  faultDomain: null,
  updateDomain: null,
  scaleSet: null,
  tags: {},
}
