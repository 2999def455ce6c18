import type { AmqpProblem } from './rhea-internals.ts'

/** Which sends a fault meets, and how long it lasts. Without `times` and `seconds` it lasts until it is cleared. */
export interface FaultScope {
  /** Queue, topic or event hub; every one where left out. */
  readonly entity?: string
  readonly times?: number
  readonly seconds?: number
}

/** A fault that was set: how often it struck, and the way to end it. */
export interface Fault {
  readonly hits: number
  clear(): void
}

/** What is to happen to one send instead of a plain acceptance. */
export type SendFault =
  | { readonly kind: 'reject'; readonly problem: AmqpProblem }
  | { readonly kind: 'silence' | 'drop'; readonly stored: boolean }
  | { readonly kind: 'detach'; readonly problem: AmqpProblem; readonly stored: boolean }

interface Armed<Effect> extends FaultScope {
  readonly effect: Effect
  readonly until: number | null
  hits: number
}

const busy: AmqpProblem = {
  condition: 'com.microsoft:server-busy',
  description: 'The request was terminated because the entity is being throttled. Error code : 50002. Please wait 4 seconds and try again.',
}
const full: AmqpProblem = {
  condition: 'amqp:resource-limit-exceeded',
  description: 'The maximum entity size has been reached or exceeded.',
}
const unauthorized: AmqpProblem = {
  condition: 'amqp:unauthorized-access',
  description: 'Unauthorized access. The claims of the token do not suffice for this operation.',
}
const forced: AmqpProblem = {
  condition: 'amqp:link:detach-forced',
  description: 'The link is force detached by the broker. Please retry.',
}

/** The operations on live connections that faults need; the broker gives them. */
export interface FaultActions {
  dropConnections(): number
  detachLinks(entity: string | null, problem: AmqpProblem): number
  freeze(frozen: boolean): void
  listen(listening: boolean): Promise<void>
}

/**
 * Everything that goes wrong on command. What is said here stays until its scope ends or `clear()`; the verbs at the end act at once.
 * Rejections name the conditions that Azure uses.
 */
export class Faults {
  readonly #now: () => number
  readonly #actions: FaultActions
  readonly #sends = new Set<Armed<SendFault>>()
  readonly #tokens = new Set<Armed<null>>()
  readonly #disabled = new Set<Armed<null>>()
  readonly #slow = new Set<Armed<number>>()

  constructor(now: () => number, actions: FaultActions) {
    this.#now = now
    this.#actions = actions
  }

  /** Sends are rejected as throttled. */
  serverBusy(scope: FaultScope = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'reject', problem: busy })
  }

  /** Sends are rejected because a quota is used up. */
  resourceLimitExceeded(scope: FaultScope = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'reject', problem: full })
  }

  /** Sends are rejected with a condition of one's own. */
  rejectSends(problem: AmqpProblem, scope: FaultScope = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'reject', problem })
  }

  /** Sends are never answered. `stored`: the message is kept all the same, so that a retry is a duplicate. */
  ignoreSends(scope: FaultScope & { readonly stored?: boolean } = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'silence', stored: scope.stored ?? false })
  }

  /** The connection breaks when a send has arrived and before it is answered. */
  dropOnSend(scope: FaultScope & { readonly stored?: boolean } = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'drop', stored: scope.stored ?? false })
  }

  /** The link is detached when a send has arrived and before it is answered. */
  detachOnSend(scope: FaultScope & { readonly stored?: boolean; readonly problem?: AmqpProblem } = {}): Fault {
    return this.#arm(this.#sends, scope, { kind: 'detach', problem: scope.problem ?? forced, stored: scope.stored ?? false })
  }

  /** Tokens for the entity are refused with 401, and links to it with `amqp:unauthorized-access`. Open links are detached. */
  unauthorized(scope: FaultScope = {}): Fault {
    const fault = this.#arm(this.#tokens, scope, null)
    this.#actions.detachLinks(scope.entity ?? null, unauthorized)
    return fault
  }

  /** The entity is disabled: its links are detached, and new ones refused. */
  disableEntity(entity: string): Fault {
    const fault = this.#arm(this.#disabled, { entity }, null)
    this.#actions.detachLinks(entity, disabledProblem(entity))
    return fault
  }

  /** Every answer to a send waits so long. */
  slow(milliseconds: number, scope: FaultScope = {}): Fault {
    return this.#arm(this.#slow, scope, milliseconds)
  }

  /** Breaks every connection now, without a word. Gives their number. */
  dropConnections(): number {
    return this.#actions.dropConnections()
  }

  /** Detaches the links of an entity, or all, now. Gives their number. */
  detachLinks(entity: string | null = null, problem: AmqpProblem = forced): number {
    return this.#actions.detachLinks(entity, problem)
  }

  /** The broker stands still: it takes connections and bytes from nobody and answers nothing, as after SIGSTOP, until `thaw()`. */
  freeze(): void {
    this.#actions.freeze(true)
  }

  thaw(): void {
    this.#actions.freeze(false)
  }

  /** New connections are refused (ECONNREFUSED); those that are open live on. */
  async refuseConnections(): Promise<void> {
    await this.#actions.listen(false)
  }

  async acceptConnections(): Promise<void> {
    await this.#actions.listen(true)
  }

  /** Ends whatever was set, thaws, and accepts connections again. */
  async clear(): Promise<void> {
    for (const armed of [this.#sends, this.#tokens, this.#disabled, this.#slow]) armed.clear()
    this.thaw()
    await this.acceptConnections()
  }

  /** @internal What the next send to the entity meets; counts as a hit. */
  forSend(entity: string): SendFault | null {
    return this.#strike(this.#sends, entity)?.effect ?? null
  }

  /** @internal Milliseconds that the answer to a send has to wait. */
  delayFor(entity: string): number {
    return this.#strike(this.#slow, entity)?.effect ?? 0
  }

  /** @internal Why a link to the entity is refused, if it is. */
  forAttach(entity: string): AmqpProblem | null {
    if (this.#strike(this.#disabled, entity) !== null) return disabledProblem(entity)
    return this.#strike(this.#tokens, entity) === null ? null : unauthorized
  }

  /** @internal Whether a token for the entity is refused. */
  refusesToken(entity: string): boolean {
    return this.#strike(this.#tokens, entity) !== null
  }

  #arm<Effect>(armed: Set<Armed<Effect>>, scope: FaultScope, effect: Effect): Fault {
    const until = scope.seconds === undefined ? null : this.#now() + scope.seconds * 1000
    const fault: Armed<Effect> = { ...scope, effect, until, hits: 0 }
    armed.add(fault)
    return {
      get hits() {
        return fault.hits
      },
      clear: () => {
        armed.delete(fault)
      },
    }
  }

  #strike<Effect>(armed: Set<Armed<Effect>>, entity: string): Armed<Effect> | null {
    for (const fault of armed) {
      if (fault.until !== null && fault.until <= this.#now()) {
        armed.delete(fault)
      } else if (fault.entity === undefined || fault.entity.toLowerCase() === entity.toLowerCase()) {
        fault.hits += 1
        if (fault.times !== undefined && fault.hits >= fault.times) armed.delete(fault)
        return fault
      }
    }
    return null
  }
}

function disabledProblem(entity: string): AmqpProblem {
  return { condition: 'com.microsoft:entity-disabled', description: `Messaging entity '${entity}' is currently disabled.` }
}
