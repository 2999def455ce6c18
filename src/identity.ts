import { setTimeout as sleep } from 'node:timers/promises'
import type { SinkLog } from '../sinks/contract.ts'
import type { Identity } from './events/identity.ts'

/** Metadata changes with a redeploy (other domains) and with tags; both are rare. */
const refreshMs = 15 * 60_000
const retryMs = 2_000

/** How long a first document waits for instance metadata: a Preempt gives 30 s, so not for long, and less where there is something to fall back on. */
const graceMs = { unknown: 10_000, remembered: 2_000 } as const

export interface IdentityOptions {
  /** Reads instance metadata, with patience. Rejects only with the reason of `signal`. */
  readonly read: (signal: AbortSignal) => Promise<{ ok: true; identity: Identity } | { ok: false; detail: string }>
  /** `identity` of the configuration: wins over what metadata says. */
  readonly configured: { readonly source?: string | undefined; readonly vmName?: string | undefined }
  /** What metadata said when this machine last ran. */
  readonly remembered: Identity | null
  readonly now: () => number
  readonly log: SinkLog
}

export interface IdentityKeeper {
  /** Who this VM is; null while that is not known. */
  current(): Identity | null
  /**
   * For a document that waits: who this VM is, or null while waiting for metadata is still right. The grace begins with the first call; after it
   * what was remembered or configured stands in, since the source of every event depends on it and an event must not be held back for ever.
   */
  decide(): Identity | null
  /** As `current`, else what was remembered; for telling of an IMDS that does not answer at all. */
  best(): Identity | null
  /** What metadata said, to be remembered; null where it has said nothing since the start. */
  read(): Identity | null
  start(): void
  stop(): Promise<void>
}

export function createIdentity({ read, configured, remembered, now, log }: IdentityOptions): IdentityKeeper {
  const controller = new AbortController()
  const mostMs = remembered !== null || configured.source !== undefined ? graceMs.remembered : graceMs.unknown
  let known: Identity | null = null
  let said: Identity | null = null
  let waitingSince: number | undefined
  let running: Promise<void> | undefined

  /** The configuration wins. */
  const configuredOver = (identity: Identity): Identity => ({
    ...identity,
    vmName: configured.vmName ?? identity.vmName,
    source: configured.source ?? identity.source,
  })
  const adopt = (identity: Identity, from: string): Identity => {
    const adopted = configuredOver(identity)
    if (JSON.stringify(adopted) !== JSON.stringify(known))
      log.info({ vm: adopted.vmName, vmId: adopted.vmId }, `this VM is known from ${from}`)
    known = adopted
    return adopted
  }

  const keepFresh = async (): Promise<void> => {
    const { signal } = controller
    let complained = false
    for (;;) {
      const answer = await read(signal)
      if (answer.ok) {
        said = answer.identity
        adopt(answer.identity, 'instance metadata')
      } else if (!complained) {
        log.warn({ reason: answer.detail }, 'instance metadata cannot be read; trying on')
      }
      complained = !answer.ok
      await sleep(answer.ok ? refreshMs : retryMs, undefined, { signal })
    }
  }

  return {
    current: () => known,
    decide() {
      if (known !== null) return known
      waitingSince ??= now()
      if (now() - waitingSince < mostMs) return null
      if (remembered !== null) return adopt(remembered, 'the state file')
      if (configured.source !== undefined || configured.vmName !== undefined) return adopt(unidentified, 'the configuration')
      log.warn(
        {},
        'instance metadata cannot be read: events go out as /unidentified; set identity.source and identity.vmName in the configuration',
      )
      known = unidentified
      return known
    },
    best: () => known ?? (remembered === null ? null : configuredOver(remembered)),
    read: () => said,
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
