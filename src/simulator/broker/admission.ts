import { audiencePath } from './address.ts'
import type { Claims } from './claims.ts'
import type { BrokerContext } from './context.ts'
import { problems } from './problems.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import type { Right } from './token.ts'
import type { Served } from './links.ts'

/** Who may open, and keep open, which link. */
export class Admission {
  readonly #claims: Claims
  readonly #context: BrokerContext

  constructor(claims: Claims, context: BrokerContext) {
    this.#claims = claims
    this.#context = context
  }

  /** Why a link to this address is not opened; null where it may be. `entity` is null where there is none of that name. */
  refusal(address: string, entity: string | null, right: Right | null): AmqpProblem | null {
    const fault = entity === null ? null : this.#context.faults.forAttach(entity)
    if (fault !== null) return fault
    // Without a claim one does not even learn whether the entity exists.
    if (this.#allows(audiencePath(address), right)) return entity === null ? problems.notFound(address) : null
    return problems.unauthorized(`${right === null ? 'A valid token is' : `'${right}' claim(s) are`} required for '${address}'.`)
  }

  /** Whether the connection has a token for the hub that a request to `$management` is about. */
  readonly reaches = (hub: string): boolean => !this.#context.requireToken || this.#claims.touch(hub.toLowerCase())

  /** Why a link must go now that claims ended; null where it may stay. */
  expiry({ path, right }: Served): AmqpProblem | null {
    if (path === null || path === '$management' || this.#allows(path, right)) return null
    return problems.unauthorized('The token has expired.')
  }

  #allows(path: string, right: Right | null): boolean {
    return !this.#context.requireToken || this.#claims.allow(path, right)
  }
}
