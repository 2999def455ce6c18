import { dirname, resolve } from 'node:path'
import { approvalsSchema } from '../config/approvals.ts'
import type { Config } from '../config/load.ts'
import type { Identity } from '../events/identity.ts'
import type { ImdsClient } from '../imds/client.ts'
import type { ImdsHealth } from '../imds/health.ts'
import type { Logger } from '../log.ts'
import type { Observer } from '../observer.ts'
import type { Store } from '../outbox/store.ts'
import { agent } from '../version.ts'
import { createApprover } from './approver.ts'
import { createBudget } from './budget.ts'
import { createCommandRunner } from './command-runner.ts'
import { createControlQueue, type ControlQueueOptions, type ControlState } from './control-queue.ts'
import { readPlainMessage } from './message.ts'
import { createPolicyRunner } from './policy-runner.ts'
import { outcomeOf } from './reason.ts'
import { createRelay } from './relay.ts'
import { openServiceBus } from './service-bus.ts'
import { tellUnfinished } from './unfinished.ts'

/** Of the 5 requests/s that all agents of a VM share. */
const requestsPerSecond = 4
const pruneMs = 10 * 60_000
/** Between two steps of a large clean-up. */
const pruneAgainMs = 100

export interface ApprovalsOptions {
  readonly config: Pick<Config, 'approvals' | 'control' | 'events' | 'scope' | 'file'>
  readonly client: Pick<ImdsClient, 'getEvents' | 'startRequests'>
  readonly store: Store
  readonly observer: Observer
  readonly identity: () => Identity | null
  readonly imds: () => ImdsHealth
  readonly env: NodeJS.ProcessEnv
  readonly now: () => number
  /** A number in [0, 1). */
  readonly random: () => number
  readonly log: Logger
  /** For metrics. */
  readonly onOutcome: (outcome: 'relayed' | 'refused' | 'failed', code: string) => void
}

export interface ApprovalsStatus {
  readonly control: ControlState | null
  readonly holds: readonly { readonly eventId: string; readonly requestedBy: string | null; readonly heldAt: string }[]
}

export interface Approvals {
  /** Idempotent. */
  start(): void
  /** After each document, once the events that it brought are stored. */
  onDocument(): void
  /** Nothing new is begun, what is under way comes to its end. Idempotent. */
  stop(): Promise<void>
  status(): ApprovalsStatus
}

/** The inbound half: queue, policy and command, all through one approver. */
export async function createApprovals(options: ApprovalsOptions): Promise<Approvals> {
  const { config, client, store, observer, identity, now, random, log } = options
  const { control } = config
  const rules = config.approvals ?? approvalsSchema.parse({})
  const prefix = config.events.typePrefix

  const approver = createApprover({
    relay: createRelay({ client, budget: createBudget(requestsPerSecond, now), now, random }),
    store,
    observer,
    identity,
    rules,
    quorum: control?.trust.type === 'signed' ? control.trust.quorum : 0,
    prefix,
    scope: config.scope,
    now,
    onOutcome: ({ code, detail, wanted, attempts, via, requestedBy }) => {
      const outcome = outcomeOf(code)
      options.onOutcome(outcome, code)
      log.info(
        { eventId: wanted?.eventId ?? null, code, via, requestedBy, attempts },
        `approval ${outcome}: ${code === 'ok' ? '' : `${code}: `}${detail}`,
      )
    },
  })
  const onFailure = (error: unknown): void => log.error({ err: error }, 'an approval could not be decided; it is tried again')
  const policy = createPolicyRunner({
    rules: rules.auto,
    gate: rules,
    approver,
    store,
    state: () => observer.state(),
    identity,
    scope: config.scope,
    now,
    log,
    onFailure,
  })
  const commands = createCommandRunner({ approver, store, log, onFailure })
  const queue =
    control === undefined
      ? undefined
      : createControlQueue({
          control,
          open: () => openServiceBus(control, { env: options.env, agent }),
          sessionId: () => sessionOf(control.session, identity()),
          ready: () => identity() !== null && options.imds().state === 'ok',
          read: await openReader(config, log),
          decide: (ask) => approver.decide(ask),
          now,
          random,
          log,
        })
  let pruning: NodeJS.Timeout | undefined
  const prune = (): void => {
    let more = false
    try {
      more = store.pruneApprovals()
    } catch (error) {
      onFailure(error)
    }
    pruning = setTimeout(prune, more ? pruneAgainMs : pruneMs)
  }
  const createdAt = now()
  let finished = false
  const finish = (): void => {
    if (finished || identity() === null) return
    try {
      tellUnfinished({ store, approver, live: observer.state().live, before: createdAt })
      finished = true
    } catch (error) {
      onFailure(error)
    }
  }

  return {
    start() {
      if (pruning !== undefined) return
      prune()
      commands.start()
      queue?.start()
    },
    onDocument() {
      finish()
      policy.look()
    },
    async stop() {
      clearTimeout(pruning)
      await Promise.all([queue?.stop(), policy.stop(), commands.stop()])
    },
    status: () => ({
      control: queue?.state() ?? null,
      holds: store
        .holds()
        .map(({ eventKey, requestedBy, heldAt }) => ({ eventId: eventKey, requestedBy, heldAt: new Date(heldAt).toISOString() })),
    }),
  }
}

/** Reads what the queue brings as `trust` wants it; the cryptography is loaded only where it does. */
async function openReader({ control, events, file }: ApprovalsOptions['config'], log: Logger): Promise<ControlQueueOptions['read']> {
  const trust = control?.trust
  if (trust?.type !== 'signed') return async (envelope) => readPlainMessage(envelope, events.typePrefix)
  const { createKeySet } = await import('./key-set.ts')
  const { readSignedMessage } = await import('./signature.ts')
  const path = resolve(file === null ? process.cwd() : dirname(file), trust.jwks)
  const keys = createKeySet(path, trust.keys, (problem) => log.error({ problem }, 'not every key of the approvers can be used'))
  return (envelope) => readSignedMessage(envelope, keys)
}

/** null: no sessions; undefined: not known yet. A VM outside of a scale set has no group but itself. */
function sessionOf(session: string, who: Identity | null): string | null | undefined {
  if (session === 'none') return null
  if (session !== 'vm' && session !== 'group') return session
  return (session === 'group' ? (who?.scaleSet ?? who?.vmName) : who?.vmName) ?? undefined
}
