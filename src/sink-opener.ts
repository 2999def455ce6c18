import type { CheckResult, DeliveryOutcome, Sink, SinkContext } from '../sinks/contract.ts'
import { ForeshockError } from '../sinks/error.ts'
import type { ConfiguredSink } from './config/sinks.ts'

/** How long closing a sink may take. */
const closeMs = 3_000

/**
 * A sink that opens itself: at once when asked to `warm`, else at the first delivery, and again after an opening that failed. One sink that
 * cannot be opened (a missing package, a bad key file) therefore never keeps the forwarder from starting; its events wait in the outbox.
 */
export function selfOpening(configured: ConfiguredSink, context: SinkContext): Sink & { warm(): void } {
  let opened: Promise<Sink> | undefined
  let closed = false

  const open = async (): Promise<Sink> => {
    if (closed) throw new ForeshockError('sink_unusable', `the sink ${context.name} is closed`)
    opened ??= configured.definition.open(configured.options, context)
    try {
      return await opened
    } catch (error) {
      // Not memoised: the next delivery tries afresh.
      opened = undefined
      throw error
    }
  }

  return {
    warm() {
      // The failure shows, with its cure, at the first delivery and in `check`.
      open().catch((error: unknown) => context.log.warn({ sink: context.name, reason: reasonOf(error) }, 'the sink cannot be opened yet'))
    },
    async deliver(event, options): Promise<DeliveryOutcome> {
      let sink: Sink
      try {
        sink = await within(options.signal, open())
      } catch (error) {
        if (options.signal.aborted)
          return { status: 'retry', because: 'transient', code: 'timeout', detail: 'the sink did not open in time' }
        return { status: 'retry', because: 'refused', code: 'open_failed', detail: reasonOf(error) }
      }
      return await sink.deliver(event, options)
    },
    async check(options): Promise<CheckResult> {
      let sink: Sink
      try {
        sink = await within(options.signal, open())
      } catch (error) {
        return { ok: false, detail: reasonOf(error), cure: 'mend the options of this sink, or install what it needs' }
      }
      return await sink.check(options)
    },
    async close() {
      closed = true
      // An opening that hangs must not keep the program from ending: whatever it still brings is closed when it comes.
      const ending = opened?.then(
        (sink) => sink.close(),
        () => undefined,
      )
      await within(AbortSignal.timeout(closeMs), ending ?? Promise.resolve()).catch((error: unknown) => {
        context.log.warn({ sink: context.name, reason: reasonOf(error) }, 'the sink did not close well')
      })
    },
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The promise, or the reason of the signal, whichever is there first. */
async function within<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
