import type { ImdsClient } from '../imds/client.ts'
import { pause } from '../imds/pause.ts'
import type { EventsDocument } from '../lifecycle/model.ts'
import type { Budget } from './budget.ts'

/** POSTs for one delivery of a message. */
const maxAttempts = 5
const firstBackoffMs = 500
/** IMDS answers 410 while it is moved, for up to 70 s; with less notice than that, asking more often is better than waiting it out. */
const longestWaitMs = 10_000
const readAttempts = 3

/** A fresh look at IMDS, or why there is none. */
type FreshRead = { readonly ok: true; readonly document: EventsDocument } | { readonly ok: false; readonly detail: string }

/** What the relay asks of whoever knows which approvals are still good. */
interface RelayHooks {
  /** Notes that a POST is about to go out. Throws what the store throws. */
  record(): void
  /** Of the ids that were given, those that may still be approved by this document. */
  stillGood(document: EventsDocument): readonly string[]
}

/** `failed`: what became of those that are still good is not known, or IMDS does not want them. */
interface RelayResult {
  readonly accepted: boolean
  /** The ids of the last POST, or none where nothing was left to approve. */
  readonly eventIds: readonly string[]
  readonly detail: string
}

export interface Relay {
  /** Reads IMDS now, with patience for what passes. Rejects only with the reason of `signal`. */
  read(signal: AbortSignal): Promise<FreshRead>
  /**
   * Approves events, all in one POST. An answer that says nothing certain is followed by another look at IMDS, and by another POST only for what
   * is still Scheduled. Rejects with the reason of `signal`, never while a POST is on its way, and with what `record` throws.
   */
  relay(eventIds: readonly string[], document: EventsDocument, hooks: RelayHooks, signal: AbortSignal): Promise<RelayResult>
}

export function createRelay(options: {
  readonly client: Pick<ImdsClient, 'getEvents' | 'startRequests'>
  readonly budget: Budget
  readonly now: () => number
  /** A number in [0, 1). */
  readonly random: () => number
}): Relay {
  const { client, budget, now, random } = options
  const backoff = (attempt: number): number => firstBackoffMs * 2 ** (attempt - 1) * (1 + random() / 4)

  const read = async (signal: AbortSignal): Promise<FreshRead> => {
    let detail = ''
    for (let attempt = 1; attempt <= readAttempts; attempt += 1) {
      await budget.take(signal)
      const result = await client.getEvents({ signal })
      if (result.kind === 'document') return { ok: true, document: result.document }
      detail = result.detail
      if (attempt < readAttempts) await pause(backoff(attempt), { signal, now })
    }
    return { ok: false, detail: `IMDS cannot be read: ${detail}` }
  }

  const relay = async (
    asked: readonly string[],
    document: EventsDocument,
    hooks: RelayHooks,
    signal: AbortSignal,
  ): Promise<RelayResult> => {
    let eventIds = asked
    let { incarnation } = document
    for (let attempt = 1; ; attempt += 1) {
      await budget.take(signal)
      hooks.record()
      // Without the signal: a POST that was cut off would leave open what became of it.
      const result = await client.startRequests({ eventIds, incarnation })
      if (result.kind === 'accepted') return { accepted: true, eventIds, detail: 'IMDS answered 200' }
      const detail = result.kind === 'throttled' ? `IMDS answered ${result.status}` : result.detail
      if (attempt >= maxAttempts) return { accepted: false, eventIds, detail: `${detail}; given up after ${attempt} attempts` }
      if (result.kind !== 'rejected') {
        const asksFor = result.kind === 'throttled' ? result.retryAfterMs : undefined
        await pause(Math.min(Math.max(asksFor ?? 0, backoff(attempt)), longestWaitMs), { signal, now })
        signal.throwIfAborted()
      }
      const again = await read(signal)
      if (!again.ok) return { accepted: false, eventIds, detail: `${detail}; then ${again.detail}` }
      const left = hooks.stillGood(again.document)
      // Refused for good, and nothing has changed that would make it another request: the same again will not help.
      if (left.length === 0 || (result.kind === 'rejected' && left.length === eventIds.length))
        return { accepted: false, eventIds: left, detail }
      eventIds = left
      incarnation = again.document.incarnation
    }
  }

  return { read, relay }
}
