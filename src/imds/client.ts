import { parseRetryAfter } from '../../sinks/retry-after.ts'
import type { EventsDocument } from '../lifecycle/model.ts'
import type { ApiVersion } from './api-versions.ts'
import { parseDocument } from './document.ts'
import { excerpt } from './excerpt.ts'
import { failure, type Failure } from './failure.ts'
import { readJsonBody } from './json-body.ts'
import { startRequestsBody, startRequestsResult, type StartRequests, type StartRequestsResult } from './start-requests.ts'
import { usualTimeoutMs } from './timeouts.ts'
import { createTransport, type Answer, type Limits } from './transport.ts'

export interface ImdsClientOptions {
  /** Origin, such as `http://169.254.169.254`. */
  readonly endpoint: string
  readonly apiVersion: ApiVersion
  /** Name and version of this program, for the User-Agent. */
  readonly agent: string
  /** Milliseconds for the TCP connection (5 s) and from the headers to the end of a body (10 s). */
  readonly timeouts?: { readonly connectMs?: number; readonly bodyMs?: number }
  /** Milliseconds since the epoch: a Retry-After may be a date. */
  readonly now?: () => number
}

/** `changed` is against the document before, whoever asked for it. Equal bytes, and a 304, give the very same object. */
export type EventsResult = { readonly kind: 'document'; readonly document: EventsDocument; readonly changed: boolean } | Failure

type JsonResult = { readonly kind: 'json'; readonly value: unknown } | Failure

export type RequestOptions = Partial<Limits>

/** Every method resolves with what came of it and rejects only with the reason of its caller's `signal`. */
export interface ImdsClient {
  /** The Scheduled Events document. Only a 200 whose body is an object with an `Events` array is one. */
  getEvents(options?: RequestOptions): Promise<EventsResult>
  /** Approves events: Azure may start them now, for all their Resources, and there is no undo. Repeating it is safe. */
  startRequests(request: StartRequests, options?: RequestOptions): Promise<StartRequestsResult>
  /** Any other path of IMDS that answers with JSON, the query included. */
  getJson(path: string, options?: RequestOptions): Promise<JsonResult>
  /** Idempotent. */
  close(): Promise<void>
}

export function createImdsClient(options: ImdsClientOptions): ImdsClient {
  const { endpoint, apiVersion, agent, timeouts, now = Date.now } = options
  const transport = createTransport({
    origin: endpoint,
    agent,
    connectMs: timeouts?.connectMs ?? 5_000,
    bodyMs: timeouts?.bodyMs ?? 10_000,
  })
  const path = `/metadata/scheduledevents?api-version=${apiVersion}`
  let last: { readonly bytes: Buffer; readonly document: EventsDocument } | undefined

  const get = (path: string, { signal, timeoutMs = usualTimeoutMs }: RequestOptions): Promise<Answer | Failure> =>
    transport.send({ method: 'GET', path }, { signal, timeoutMs })

  return {
    async getEvents(options = {}) {
      const answer = await get(path, options)
      if (answer.kind === 'failure') return answer
      // Nothing was asked conditionally, so a 304 can only mean "as I told you": it says nothing before a first document.
      if (answer.status === 304 && last !== undefined) return { kind: 'document', document: last.document, changed: false }
      const unusable = unusableAnswer(answer, now())
      if (unusable !== undefined) return unusable
      if (last?.bytes.equals(answer.body) === true) return { kind: 'document', document: last.document, changed: false }
      const body = readJsonBody(answer.body)
      if (!body.ok) return { ...failure(body.reason, `expected a Scheduled Events document, ${body.problem}`), status: answer.status }
      const parsed = parseDocument(body.value)
      if (!parsed.ok) return { ...failure('not_a_document', parsed.problem), status: answer.status }
      last = { bytes: answer.body, document: parsed.document }
      return { kind: 'document', document: parsed.document, changed: true }
    },

    async startRequests(request, { signal, timeoutMs = usualTimeoutMs } = {}) {
      const json = startRequestsBody(request, apiVersion)
      return startRequestsResult(await transport.send({ method: 'POST', path, json }, { signal, timeoutMs }), now())
    },

    async getJson(path, options = {}) {
      const answer = await get(path, options)
      if (answer.kind === 'failure') return answer
      const unusable = unusableAnswer(answer, now())
      if (unusable !== undefined) return unusable
      const body = readJsonBody(answer.body)
      return body.ok
        ? { kind: 'json', value: body.value }
        : { ...failure(body.reason, `${path}: expected JSON, ${body.problem}`), status: answer.status }
    },

    close: () => transport.close(),
  }
}

/** Why the body of this answer is not to be read at all. The status decides first: an error may carry a perfectly valid document. */
function unusableAnswer(answer: Answer, nowMs: number): Failure | undefined {
  const { status, cut } = answer
  if (status === 200) return cut === undefined ? undefined : { ...cut, status }
  const retryAfterMs = parseRetryAfter(answer.retryAfter, nowMs)
  return { ...statusFailure(answer), status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function statusFailure({ status, location, body }: Answer): Failure {
  if (status >= 300 && status < 400 && status !== 304) {
    const target = location === undefined ? 'without a location' : `to ${JSON.stringify(location.slice(0, 200))}`
    return failure(
      'redirect',
      `expected status 200, got ${status} ${target}: not followed, for IMDS never redirects; look for a proxy in between`,
    )
  }
  const said = body.length === 0 ? '' : ` saying ${excerpt(body)}`
  const cure = status === 400 ? '; check imds.apiVersion and imds.endpoint' : ''
  return failure('http_status', `expected status 200, got ${status}${said}${cure}`)
}
