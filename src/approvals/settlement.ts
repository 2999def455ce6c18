import { mayPass, type Code } from './reason.ts'

/** What is done with a message of the control queue. */
export type Settlement = 'complete' | 'dead-letter' | 'abandon'

/** What was asked for has happened, by whomever: nobody needs to look at the message again. */
const settled: ReadonlySet<Code> = new Set(['ok', 'event_already_started', 'replayed'])

/**
 * The settlement of a message by what became of each event in it, and the code that decided. `last`: it will not be delivered again.
 * A permanent refusal of one event does not keep the others from another try, and is told once all is over.
 */
export function settlementOf(codes: readonly Code[], last: boolean): { readonly settlement: Settlement; readonly code: Code } {
  const again = codes.find(mayPass)
  if (again !== undefined && !last) return { settlement: 'abandon', code: again }
  const refused = codes.find((code) => !settled.has(code))
  if (refused !== undefined) return { settlement: 'dead-letter', code: refused }
  return { settlement: 'complete', code: codes.find((code) => code !== 'ok') ?? 'ok' }
}

/** How a message stands with the broker. */
export interface Delivery {
  /** Deliveries before this one. */
  readonly deliveryCount: number
  /** Milliseconds since the epoch, null where it lives for ever. */
  readonly expiresAt: number | null
}

/** How long a message that may pass later rests before it is given back; longer each time, so that a short queue still covers minutes. */
export function pauseMs(deliveryCount: number, first: number): number {
  return Math.min(first * 2 ** Math.min(deliveryCount, 10), 30_000)
}

/** Whether giving the message back would only make the broker drop or bury it, without our reason. */
export function isLast({ deliveryCount, expiresAt }: Delivery, maxDeliveryCount: number, now: number, pause: number): boolean {
  return deliveryCount + 1 >= maxDeliveryCount || (expiresAt !== null && expiresAt <= now + pause)
}
