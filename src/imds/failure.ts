/** Why a request brought no usable answer. A stable word, for metrics and for telling one cause of a failure from the next. */
export type FailureReason =
  /** No connection, headers or whole body in time. */
  | 'timeout'
  /** Nothing listens there. */
  | 'refused'
  /** No route to the address, or no such name. */
  | 'unroutable'
  /** The connection was lost before an answer came. */
  | 'reset'
  /** What came is not HTTP/1.1. */
  | 'bad_http'
  /** Any other fault that the operating system reports of the connection. */
  | 'network'
  /** This client was closed by its owner. */
  | 'closed'
  /** A 3xx: never followed. */
  | 'redirect'
  /** Any other status but 200. */
  | 'http_status'
  /** A 200 without a body. */
  | 'empty_body'
  | 'too_large'
  /** The connection or the text ended in the middle of the body. */
  | 'truncated'
  | 'not_json'
  /** JSON, but not the document that was asked for. */
  | 'not_a_document'

/** A health signal, never a statement about events. */
export interface Failure {
  readonly kind: 'failure'
  readonly reason: FailureReason
  /** One line for people: what was expected, what was got and, where something can be done, what. */
  readonly detail: string
  readonly status?: number
  /** What the other side asked for, in milliseconds from now. */
  readonly retryAfterMs?: number
}

export function failure(reason: FailureReason, detail: string): Failure {
  return { kind: 'failure', reason, detail }
}
