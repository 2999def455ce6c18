import { delivered, type DeliveryOutcome } from '../contract.ts'
import { parseRetryAfter } from '../retry-after.ts'

/** What of an HTTP response decides. */
export interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly location: string | undefined
}

/** Success as the contract has it; another 2xx (a proxy's 203, a 206) does not say that the event was taken. */
const successes = new Set([200, 201, 202, 204])

/** The client errors that say "not now" rather than "never": time-out, misdirected, too early. */
const passing = new Set([408, 421, 425])

/**
 * The outcome for a response. Nothing of its body or URL goes into the detail: both may hold secrets.
 *
 * Source: RFC 9110, section 15; https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#22-delivery-response
 */
export function classifyAnswer(answer: Answer, { target, now }: { readonly target: URL; readonly now: number }): DeliveryOutcome {
  const { status } = answer
  const code = `http_${status}`
  const answered = `${target.host} answered ${status}`
  if (successes.has(status)) return delivered
  if (status === 410) {
    return { status: 'retry', because: 'stopped', code, detail: `${answered}: it wants no more events` }
  }
  if (status === 429 || status >= 500 || passing.has(status)) {
    const because = status === 429 || status === 503 ? 'throttled' : 'transient'
    const retryAfterMs = parseRetryAfter(answer.retryAfter, now)
    return { status: 'retry', because, code, detail: answered, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }
  if (status >= 400) return { status: 'rejected', code, detail: `${answered}: the event or the request is not acceptable to it` }
  if (status >= 300) {
    const detail = `${answered}${pointing(answer.location, target)}; redirects are not followed: set \`url\` to where the receiver is`
    return { status: 'retry', because: 'refused', code, detail }
  }
  return { status: 'retry', because: 'refused', code, detail: `${answered}, which does not say that the event was taken` }
}

/** The host alone: the rest of a Location may hold a secret. */
function pointing(location: string | undefined, target: URL): string {
  const host = location === undefined ? undefined : URL.parse(location, target.href)?.host
  return host === undefined || host === '' ? '' : ` and points to ${host}`
}
