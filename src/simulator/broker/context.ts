import type { SinkLog } from '../../../sinks/contract.ts'
import type { Directory } from './directory.ts'
import type { Entities } from './entities.ts'
import type { Faults } from './faults.ts'
import type { Journal } from './journal.ts'
import type { Right } from './token.ts'

/** Judges a JWT that a client presents; null refuses it. */
export type VerifyJwt = (token: string, audience: string) => JwtGrant | null | Promise<JwtGrant | null>

interface JwtGrant {
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly rights?: readonly Right[]
}

/** What every connection of a broker shares. */
export interface BrokerContext {
  readonly directory: Directory
  readonly keys: Entities['keys']
  readonly verifyJwt: VerifyJwt | null
  readonly requireToken: boolean
  readonly faults: Faults
  readonly journal: Journal
  readonly now: () => number
  readonly log: SinkLog
  /** Notes a failure of the broker itself, or of a peer that broke the protocol. */
  readonly remember: (what: string, error: unknown) => void
}
