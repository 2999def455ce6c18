/** Which of the ways in an approval took. */
export type Via = 'queue' | 'policy' | 'command'

/** What is asked of one event. */
export interface Wanted {
  /** `approve`, `hold`, or a word that we do not know. */
  readonly command: string
  /** In the spelling of whoever asks. */
  readonly eventId: string
  /** 16 to 64 lower-case hex digits of the state that the approver saw; null where the approval is bound to none. */
  readonly digest: string | null
  /** The machines that the approver means; null where that was not said. */
  readonly resources: readonly string[] | null
}

/** One signature of a message, as far as it could be checked. */
export interface Signature {
  readonly typ: unknown
  readonly alg: unknown
  readonly kid: string | null
  readonly subject: string | null
  /** What the configuration knows of its key; null where there is no such key. */
  readonly key: SignatureKey | null
  /** The cryptography says so; false also where it was not asked, because something before was wrong. */
  readonly valid: boolean
}

export interface SignatureKey {
  /** JWK thumbprint: the same key under another kid is the same key. */
  readonly thumbprint: string
  readonly alg: 'ES256' | 'EdDSA'
  /** null is "no limit". */
  readonly issuers: readonly string[] | null
  readonly eventTypes: readonly string[] | null
  readonly audiences: readonly string[] | null
}

/** Times are milliseconds since the epoch. */
interface Validity {
  readonly issuedAt: number | null
  readonly notBefore: number | null
  readonly expiresAt: number | null
}

/** What somebody asks, whichever way it came, read but not judged. */
export interface ApprovalRequest {
  readonly via: Via
  /** Size of the body. */
  readonly bytes: number
  /** Why it could not be read; then `wanted` is empty. */
  readonly problem: string | null
  readonly wanted: readonly Wanted[]
  readonly requestedBy: string | null
  readonly reason: string | null
  /** `messageId` of the transport. */
  readonly messageId: string | null
  /** Identifies the request for the replay check: `jti` of a signed one, else the message id. null where it has none. */
  readonly replayId: string | null
  /** Whom it is for: names or ids of which one must be ours; null where it does not say. */
  readonly audience: readonly string[] | null
  readonly validity: Validity
  /** Only in `trust: signed`. */
  readonly signed: {
    readonly issuer: string
    readonly signatures: readonly Signature[]
  } | null
}

/** A request that could not be read. */
export function unreadable(via: Via, bytes: number, messageId: string | null, problem: string | null): ApprovalRequest {
  return {
    via,
    bytes,
    problem,
    wanted: [],
    requestedBy: null,
    reason: null,
    messageId,
    replayId: messageId,
    audience: null,
    validity: { issuedAt: null, notBefore: null, expiresAt: null },
    signed: null,
  }
}
