import { Pool, type Dispatcher } from 'undici'
import { ForeshockError } from '../../sinks/error.ts'
import { connectionFailure } from './connection-failure.ts'
import { failure, type Failure } from './failure.ts'

/** Real documents have a few KiB. */
const longestBody = 1024 * 1024
/** Enough of any other answer to tell people what it says, and to leave the connection usable. */
const longestOtherBody = 16 * 1024

export interface TransportOptions {
  /** `http://host[:port]`. */
  readonly origin: string
  /** User-Agent. */
  readonly agent: string
  /** Milliseconds for the TCP connection. */
  readonly connectMs: number
  /** Milliseconds from the headers to the end of the body. */
  readonly bodyMs: number
}

interface TransportRequest {
  readonly method: 'GET' | 'POST'
  /** Path and query. */
  readonly path: string
  readonly json?: string
}

export interface Limits {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for all of it: connection, headers, body. */
  readonly timeoutMs: number
}

/** An answer whose headers came. */
export interface Answer {
  readonly kind: 'answer'
  readonly status: number
  readonly retryAfter: string | undefined
  readonly location: string | undefined
  readonly date: string | undefined
  readonly body: Buffer
  /** Why the body is not whole, where it is not. */
  readonly cut?: Failure
}

export interface Transport {
  /** Rejects only with the reason of `signal`. */
  send(request: TransportRequest, limits: Limits): Promise<Answer | Failure>
  /** Ends what is in flight with `closed`. Idempotent. */
  close(): Promise<void>
}

/**
 * HTTP to IMDS as the endpoint wants it: direct whatever proxy the environment names, no redirect followed, `Metadata: true`.
 *
 * `dispatch` is undici's innermost interface: no stream and no promise per chunk. A poll costs about 0.4 ms of processor time that way,
 * `request` about 0.5. Of the pool's connections polling keeps one; the others let a POST go out while a GET hangs.
 */
export function createTransport(options: TransportOptions): Transport {
  const closing = new AbortController()
  const pool = new Pool(options.origin, {
    connections: 4,
    // Without the signal, a connection that is still being made outlives `destroy` until its own time is over.
    connect: { timeout: options.connectMs, signal: closing.signal },
    allowH2: false,
    // undici's own timers are off by up to half a second and know no total: `send` keeps the time instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    send: (request, limits) => send(pool, options, request, limits),
    close: async () => {
      if (!pool.destroyed) await pool.destroy()
      closing.abort()
    },
  }
}

function send(pool: Pool, options: TransportOptions, request: TransportRequest, limits: Limits): Promise<Answer | Failure> {
  const { signal, timeoutMs } = limits
  const what = `${request.method} ${options.origin}${request.path.replace(/\?.*/, '')}`
  const { promise, resolve, reject } = Promise.withResolvers<Answer | Failure>()

  let controller: Dispatcher.DispatchController | undefined
  let head: Omit<Answer, 'kind' | 'body' | 'cut'> | undefined
  let chunks: Buffer[] = []
  let size = 0
  let settled = false
  let bodyTimer: NodeJS.Timeout | undefined

  const settle = (): boolean => {
    if (settled) return false
    settled = true
    clearTimeout(totalTimer)
    clearTimeout(bodyTimer)
    signal?.removeEventListener('abort', abort)
    return true
  }
  const answer = (cut?: Failure): void => {
    if (head === undefined || !settle()) return
    resolve({ kind: 'answer', ...head, body: Buffer.concat(chunks, size), ...(cut && { cut }) })
    chunks = []
  }
  const fail = (why: Failure): void => {
    if (head !== undefined) answer(why)
    else if (settle()) resolve(why)
  }
  // undici can end a request only once it has a connection: until then `onRequestStart` does it.
  const hangUp = (): void => controller?.abort(new ForeshockError('unreachable', `${what}: given up`))
  const timeOut = (ms: number, part: string): void => {
    fail(failure('timeout', `${what}: expected ${part} within ${ms} ms, got ${head === undefined ? 'nothing' : `${size} bytes of it`}`))
    hangUp()
  }
  const abort = (): void => {
    if (settle()) reject(signal?.reason)
    hangUp()
  }
  const totalTimer = setTimeout(() => timeOut(timeoutMs, 'an answer'), timeoutMs)

  if (signal?.aborted === true) {
    abort()
    return promise
  }
  signal?.addEventListener('abort', abort, { once: true })

  pool.dispatch(
    {
      method: request.method,
      path: request.path,
      headers: {
        Metadata: 'true',
        'User-Agent': options.agent,
        ...(request.json !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(request.json !== undefined && { body: request.json }),
    },
    {
      onRequestStart(started) {
        controller = started
        if (settled) hangUp()
      },
      onResponseStart(_, status, headers) {
        if (status < 200) return
        head = { status, retryAfter: first(headers['retry-after']), location: first(headers.location), date: first(headers.date) }
        bodyTimer = setTimeout(() => timeOut(options.bodyMs, 'the whole body'), options.bodyMs)
      },
      onResponseData(_, chunk) {
        size += chunk.length
        chunks.push(chunk)
        const longest = head?.status === 200 ? longestBody : longestOtherBody
        if (size <= longest) return
        fail(failure('too_large', `${what}: expected at most ${longest} bytes, got more; something other than IMDS answers there`))
        hangUp()
      },
      onResponseEnd: () => answer(),
      onResponseError(_, error) {
        if (settled) return
        const why = connectionFailure(error, what)
        if (why === undefined) {
          settle()
          reject(error)
        } else if (head !== undefined && why.reason === 'reset') {
          fail(failure('truncated', `${what}: expected the whole body, got ${size} bytes of it before the connection was lost`))
        } else {
          fail(why)
        }
      },
    },
  )
  return promise
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
