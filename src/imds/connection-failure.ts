import { errors } from 'undici'
import { failure, type Failure, type FailureReason } from './failure.ts'

/** Codes of Node (libuv) and undici. */
const reasons: Readonly<Record<string, FailureReason>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  EHOSTUNREACH: 'unroutable',
  ENETUNREACH: 'unroutable',
  ENETDOWN: 'unroutable',
  EADDRNOTAVAIL: 'unroutable',
  ENOTFOUND: 'unroutable',
  EAI_AGAIN: 'unroutable',
  UND_ERR_HEADERS_OVERFLOW: 'bad_http',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'truncated',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
}

const cures: Partial<Record<FailureReason, string>> = {
  refused: 'check imds.endpoint, and that IMDS is there: it is only inside an Azure VM',
  unroutable: 'check imds.endpoint and the routes of this machine: IMDS is only inside an Azure VM',
  timeout: 'check that no firewall rule drops packets to it',
}

/**
 * A fault of the connection as a failure; undefined where the error is no such fault but one of the program, which must not be hidden.
 * `what` names the request: `GET http://…/metadata/scheduledevents`.
 */
export function connectionFailure(error: Error, what: string): Failure | undefined {
  const code = codeOf(error)
  if (code === undefined) return undefined
  const reason = code === 'HPE' ? 'bad_http' : (reasons[code] ?? 'network')
  const cure = cures[reason]
  const message = error.message === '' ? code : `${error.message} (${code})`
  return failure(reason, `${what}: expected an answer, got ${message}${cure === undefined ? '' : `; ${cure}`}`)
}

function codeOf(error: Error): string | undefined {
  // The parser's own codes (HPE_…) get lost: undici 8 looks them up the wrong way round.
  if (error instanceof errors.HTTPParserError) return 'HPE'
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
