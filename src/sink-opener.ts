import type { CheckResult, DeliveryOutcome, Sink, SinkContext } from '../sinks/contract.ts'
import { ForeshockError } from '../sinks/error.ts'
import type { ConfiguredSink } from './config/sinks.ts'

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
        sink = await open()
      } catch (error) {
        return { status: 'retry', because: 'refused', code: 'open_failed', detail: reasonOf(error) }
      }
      return await sink.deliver(event, options)
    },
    async check(options): Promise<CheckResult> {
      let sink: Sink
      try {
        sink = await open()
      } catch (error) {
        return { ok: false, detail: reasonOf(error), cure: 'mend the options of this sink, or install what it needs' }
      }
      return await sink.check(options)
    },
    async close() {
      closed = true
      const sink = await opened?.catch(() => undefined)
      await sink?.close()
    },
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
