import type { DeliveryOutcome } from '../contract.ts'
import { allowedRate } from './allowed-rate.ts'
import { classifyAnswer } from './answer.ts'
import { consentOf, type Asking, type Consent } from './consent.ts'
import type { Response } from './transport.ts'

/** How long consent counts before it is asked for anew: so soon is a withdrawal noticed by a receiver that says nothing else. */
const consentMs = 60_000

/** Leave to send, or what becomes of the event without it. */
type Leave = { readonly done: () => void } | { readonly outcome: DeliveryOutcome }

export interface Permission {
  /** Asks where nothing is known or what is known is old. `done` is called once the answer to the request is there. */
  leave(signal: AbortSignal): Promise<Leave>
  /** Asks now. undefined where consent is given, else what becomes of the event. */
  renew(signal: AbortSignal): Promise<DeliveryOutcome | undefined>
}

/**
 * The validation handshake of one target. No consent, no request: its events wait, and it is asked again at the pace of the outbox. The rate that
 * comes with consent is kept to, whatever the outbox would like.
 */
export function permission(options: {
  readonly asking: Asking
  readonly target: URL
  readonly now: () => number
  /** Sends OPTIONS. */
  readonly ask: (signal: AbortSignal) => Promise<Response>
}): Permission {
  const { asking, target, now, ask } = options
  const rate = allowedRate(now)
  let known: { readonly consent: Consent; readonly at: number } | undefined
  let pending: Promise<DeliveryOutcome | undefined> | undefined

  const question = async (signal: AbortSignal): Promise<DeliveryOutcome | undefined> => {
    const response = await ask(signal)
    const consent = consentOf(response, asking)
    known = { consent, at: now() }
    if (consent.given) return undefined
    known = undefined
    const outcome = classifyAnswer(response, { target, now: now() })
    // What passes by itself (503, 429) or is final (410) says more than the missing consent.
    if (outcome.status === 'retry' && outcome.because !== 'refused') return outcome
    const detail = `${target.host} gives no consent, so nothing is sent: it ${consent.why}`
    return { status: 'retry', because: 'refused', code: 'no_consent', detail }
  }

  /** One question at a time, whoever waits for its answer. */
  const renew = (signal: AbortSignal): Promise<DeliveryOutcome | undefined> =>
    (pending ??= question(signal).finally(() => {
      pending = undefined
    }))

  return {
    renew,
    async leave(signal) {
      // A clock that was set back makes an answer old as well.
      const isFresh = known !== undefined && now() >= known.at && now() - known.at < consentMs
      const refusal = isFresh ? undefined : await renew(signal)
      if (refusal !== undefined) return { outcome: refusal }
      const perMinute = known?.consent.given === true ? known.consent.perMinute : 0
      const slot = rate.take(perMinute)
      if ('done' in slot) return slot
      const detail = `${target.host} allows ${perMinute} requests a minute, and they are used up`
      return { outcome: { status: 'retry', because: 'throttled', code: 'allowed_rate', detail, retryAfterMs: slot.waitMs } }
    },
  }
}
