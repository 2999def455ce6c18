import type { DeliveryOutcome } from '../contract.ts'
import { ForeshockError } from '../error.ts'
import { parseRetryAfter } from '../retry-after.ts'

type Retry = Extract<DeliveryOutcome, { status: 'retry' }>
type Failed = Exclude<DeliveryOutcome, { status: 'delivered' }>

const network = /^(?:E(?:CONN|HOST|NET)[A-Z]+|EAI_[A-Z]+|ETIMEDOUT|ENOTFOUND|EPIPE|REQUEST_SEND_ERROR)$/
const tls = /^(?:ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$|HOSTNAME_MISMATCH$)/

const cures: Readonly<Record<number, string>> = {
  401: 'the token is for another tenant or cloud: check `auth` and `endpoint`',
  403: 'give the identity the role Monitoring Metrics Publisher on the data collection rule; it takes up to half an hour to count',
  404: 'check `ruleId` (the immutable id, dcr-…), `stream`, and that `endpoint` is the one of that rule',
}

/** What an answer of the service means. `code` is the one in its body: 400 is said of an unknown stream as well. */
export function classifyStatus(status: number, code: string, retryAfter: string | undefined, now: number): Failed {
  const answered = `the ingestion endpoint answered ${status}${code === '' ? '' : ` (${code})`}`
  const retry = (because: Retry['because']): Failed => {
    const retryAfterMs = parseRetryAfter(retryAfter, now)
    return { status: 'retry', because, code: `http_${status}`, detail: answered, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }
  if (status === 429 || status === 503) return retry('throttled')
  if (status === 408 || status >= 500) return retry('transient')
  const misplaced = status === 400 && /stream/i.test(code)
  if (misplaced || status in cures || status < 400) {
    const detail = `${answered}: ${cures[misplaced ? 404 : status] ?? 'check `endpoint`'}`
    return { status: 'retry', because: 'refused', code: `http_${status}`, detail }
  }
  return { status: 'rejected', code: `http_${status}`, detail: `${answered}: the row is not acceptable to it` }
}

/** What `upload` threw. Throws it again where it is none of the known kinds. */
export function classifyError(error: unknown, host: string, now: number): Failed {
  const cause = firstCause(error)
  if (cause instanceof ForeshockError) {
    const because = cause.code === 'unreachable' ? 'transient' : 'refused'
    return { status: 'retry', because, code: 'no_token', detail: cause.message }
  }
  if (!(cause instanceof Error)) throw error
  const code = textOf(Reflect.get(cause, 'code'))
  const status: unknown = Reflect.get(cause, 'statusCode')
  if (typeof status === 'number') return classifyStatus(status, word(code), retryAfterOf(cause), now)
  if (tls.test(code)) {
    return {
      status: 'retry',
      because: 'refused',
      code: 'tls',
      detail: `${host} could not be verified or does not speak TLS as expected: ${code}`,
    }
  }
  if (network.test(code))
    return { status: 'retry', because: 'transient', code: 'network', detail: `the connection to ${host} failed: ${code}` }
  throw error
}

/** `upload` gathers the failures of its chunks; one event is one chunk. */
function firstCause(error: unknown): unknown {
  const parts: unknown = error instanceof Error ? Reflect.get(error, 'errors') : undefined
  const first: unknown = Array.isArray(parts) ? parts[0] : undefined
  return typeof first === 'object' && first !== null ? Reflect.get(first, 'cause') : error
}

function retryAfterOf(error: Error): string | undefined {
  const headers: unknown = Reflect.get(Object(Reflect.get(error, 'response')), 'headers')
  const get: unknown = Reflect.get(Object(headers), 'get')
  const value: unknown = typeof get === 'function' ? Reflect.apply(get, headers, ['retry-after']) : undefined
  return typeof value === 'string' ? value : undefined
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Codes of the service are words; whatever else a body holds does not get into a detail. */
const word = (code: string): string => (/^[A-Za-z]{1,60}$/.test(code) ? code : '')
