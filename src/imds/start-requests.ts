import { parseRetryAfter } from '../../sinks/retry-after.ts'
import type { ApiVersion } from './api-versions.ts'
import { excerpt } from './excerpt.ts'
import type { Failure } from './failure.ts'
import type { Answer } from './transport.ts'

/** 4xx that come and go without a fault of the request. */
const passing = new Set([404, 405, 408])

export interface StartRequests {
  /** In the spelling of the document. */
  readonly eventIds: readonly string[]
  /** Of the document that they were read from; only the first API version sends it. */
  readonly incarnation: number | string | null
}

/**
 * What became of an approval.
 *
 * - `accepted`: a 200.
 * - `rejected`: the request was understood and refused, so nothing was approved; the same again will not help.
 * - `throttled`: refused for now (429, or 410: the host asks to come back within 70 s).
 * - `uncertain`: it may or may not have been approved. Read the document again; while the event is still Scheduled, repeating is safe.
 *
 * A 5xx is uncertain, since the host may fail after it has acted. So are a connection that never came about and a 404 or 405, which IMDS
 * gives in passing: what to do next is the same.
 */
export type StartRequestsResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'rejected'; readonly status: number; readonly detail: string }
  | { readonly kind: 'throttled'; readonly status: number; readonly retryAfterMs?: number }
  | { readonly kind: 'uncertain'; readonly detail: string }

/** The body of the POST. The preview version wants the incarnation beside the requests, as a string. */
export function startRequestsBody({ eventIds, incarnation }: StartRequests, apiVersion: ApiVersion): string {
  return JSON.stringify({
    ...(apiVersion === '2017-03-01' && incarnation !== null && { DocumentIncarnation: String(incarnation) }),
    StartRequests: eventIds.map((EventId) => ({ EventId })),
  })
}

export function startRequestsResult(answer: Answer | Failure, nowMs: number): StartRequestsResult {
  if (answer.kind === 'failure') return { kind: 'uncertain', detail: answer.detail }
  const { status, body } = answer
  // The status line of a 200 is the whole statement: no body is documented, so none is expected.
  if (status === 200) return { kind: 'accepted' }
  const detail = `expected status 200, got ${status}${body.length === 0 ? '' : ` saying ${excerpt(body)}`}`
  if (status === 429 || status === 410) {
    const retryAfterMs = parseRetryAfter(answer.retryAfter, nowMs)
    return { kind: 'throttled', status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  }
  return status < 300 || status >= 500 || passing.has(status) ? { kind: 'uncertain', detail } : { kind: 'rejected', status, detail }
}
