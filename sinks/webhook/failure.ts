import { ForeshockError } from '../error.ts'

/** A request that got no response, classified. `cure` is for `check`. */
export interface Failure {
  readonly because: 'transient' | 'refused'
  readonly code: string
  readonly detail: string
  readonly cure: string
}

/** Verification of certificates (names of OpenSSL's X509_V_ERR_*) and the handshake itself. */
const tls =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO_|ERROR_IN_C|SELF_SIGNED_|UNABLE_TO_|EPROTO$|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$)/

/** The way there: name service, routing, the connection. All of it may pass by itself. */
const network =
  /^(?:E(?:CONN|HOST|NET)[A-Z]+|EAI_[A-Z]+|E(?:ADDRNOTAVAIL|ACCES|PERM|PIPE|TIMEDOUT|NOTFOUND|MFILE|NFILE|NOBUFS)|UND_ERR_(?:SOCKET|INFO|CONNECT_TIMEOUT))$/

/** What came back is not HTTP, or not a response that fits into memory. */
const unreadable = /^(?:HTTPParserError|HPE_[A-Z_]+|UND_ERR_(?:HEADERS_OVERFLOW|RES_EXCEEDED_MAX_SIZE|RES_CONTENT_LENGTH_MISMATCH))$/

const closed = /^(?:UND_ERR_(?:ABORTED|DESTROYED|CLOSED)|ABORT_ERR)$/

/** Classifies what the request or the connection threw; throws it again where it is none of the known kinds. */
export function classifyFailure(error: unknown, target: URL): Failure {
  const { host } = target
  if (error instanceof ForeshockError && error.code === 'unreachable') {
    return {
      because: 'transient',
      code: error.code,
      detail: error.message,
      cure: 'check that what stands between can be reached: proxy, Entra ID',
    }
  }
  if (error instanceof ForeshockError) {
    return { because: 'refused', code: error.code, detail: error.message, cure: 'correct the options of this sink' }
  }
  const code = codeOf(error)
  if (tls.test(code)) {
    return {
      because: 'refused',
      code: 'tls',
      detail: `${host} could not be verified or does not speak TLS as expected: ${code}`,
      cure: 'check the certificate of the receiver: its name, its dates, and whether this machine trusts its issuer',
    }
  }
  if (network.test(code)) {
    return {
      because: 'transient',
      code: 'network',
      detail: `the connection to ${host} failed: ${code}`,
      cure: 'check host name, port, firewall and whether the receiver runs',
    }
  }
  if (unreadable.test(code)) {
    return {
      because: 'transient',
      code: 'bad_answer',
      detail: `${host} answered what is not readable as HTTP: ${code}`,
      cure: 'check that the port is the one of an HTTP server',
    }
  }
  if (closed.test(code)) {
    return { because: 'transient', code: 'closed', detail: 'the sink was closed meanwhile', cure: 'open the sink again' }
  }
  throw error
}

/** undici's parser errors have a code in some of its builds only; their name serves as well. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
