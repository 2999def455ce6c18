import { z } from 'zod'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import type { DeliveryOutcome, Sink } from '../../sinks/contract.ts'

/** A sink may be anybody's module: what it resolves with is checked like any other input. */
const outcomeSchema = z.union([
  z.object({ status: z.literal('delivered') }),
  z.object({
    status: z.literal('retry'),
    because: z.enum(['transient', 'throttled', 'refused', 'stopped']),
    code: z.string(),
    detail: z.string(),
    retryAfterMs: z.number().exactOptional(),
  }),
  z.object({ status: z.literal('rejected'), code: z.string(), detail: z.string() }),
])

/** After its signal, a sink has this long to say itself what became of the event. */
const graceMs = 1000

export interface Attempt {
  /** Stop now. `done` follows, at the latest when the grace is over. */
  abort(): void
}

/**
 * Asks the sink once. `done` is called exactly once, never in this call; what comes later is ignored, and no timer is left.
 * With a sink that ignores its signal it is called all the same, with `timeout`.
 */
export function startAttempt(
  sink: Pick<Sink, 'deliver'>,
  event: CloudEvent,
  timeoutMs: number,
  done: (outcome: DeliveryOutcome) => void,
): Attempt {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let over = false

  const finish = (outcome: DeliveryOutcome): void => {
    if (over) return
    over = true
    clearTimeout(timer)
    done(outcome)
  }
  const expire = (reason: string): void => {
    if (over || controller.signal.aborted) return
    clearTimeout(timer)
    timer = setTimeout(() => finish(transient('timeout', `${reason}, and the sink did not heed its signal within ${graceMs} ms`)), graceMs)
    controller.abort(new DOMException(reason, 'TimeoutError'))
  }

  timer = setTimeout(() => expire(`not delivered within ${timeoutMs} ms`), timeoutMs)
  ask(sink, event, controller.signal).then(
    (answer) => finish(checked(answer)),
    (error: unknown) => finish(thrown(error, controller.signal)),
  )
  return { abort: () => expire('foreshock stops') }
}

/** `async`, so that a sink that throws before its first promise is no special case. */
async function ask(sink: Pick<Sink, 'deliver'>, event: CloudEvent, signal: AbortSignal): Promise<unknown> {
  return await sink.deliver(event, { signal })
}

function checked(answer: unknown): DeliveryOutcome {
  const parsed = outcomeSchema.safeParse(answer)
  if (parsed.success) return parsed.data
  return transient('invalid_outcome', 'the sink did not resolve with delivered, retry or rejected: mend its module')
}

function thrown(error: unknown, signal: AbortSignal): DeliveryOutcome {
  const detail = error instanceof Error ? error.message : String(error)
  if (signal.aborted) return transient('timeout', detail)
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'threw'
  return transient(code, detail)
}

const transient = (code: string, detail: string): DeliveryOutcome => ({ status: 'retry', because: 'transient', code, detail })
