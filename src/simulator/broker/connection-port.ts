import type { Delivery, Sender } from 'rhea'
import type { Admission } from './admission.ts'
import type { Claims } from './claims.ts'
import type { BrokerContext } from './context.ts'
import type { Links } from './links.ts'

/** What the links of a connection need of it. */
export interface ConnectionPort {
  readonly context: BrokerContext
  readonly links: Links
  readonly claims: Claims
  readonly admission: Admission
  /** Who holds a lock: the connection with the link, because link names alone may repeat. */
  owner(linkName: string): string
  /** The link that a reply-to names. */
  replyLink(replyTo: string): Sender | undefined
  /** Whether a delivery was longer than anything that this broker takes. Answers once. */
  takeOversized(delivery: Delivery): boolean
  /** Breaks the socket. */
  drop(): void
  /** Whether the socket is gone. */
  isClosed(): boolean
}

/** Address of a source or target; empty where the peer gave none, which the typings of rhea do not foresee. */
export function addressOf(terminus: unknown): string {
  const address: unknown = typeof terminus === 'object' && terminus !== null ? Reflect.get(terminus, 'address') : undefined
  return typeof address === 'string' ? address : ''
}
