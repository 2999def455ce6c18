import type { Writable } from 'node:stream'
import { z } from 'zod'
import { defineSink, delivered, type DeliveryOutcome, type EventFormat, type Sink } from './contract.ts'
import { interrupted, untilAborted } from './interrupted.ts'

const options = z.strictObject({})

/** Characters that may wait in the stream; four of the largest events. */
const backlogLimit = 4 * 64 * 1024

export default defineSink({
  type: 'stdout',
  summary: 'One JSON line per event on standard output',
  options,
  formats: ['cloudevents', 'azure-resource-log', 'ecs'],
  open: async (_, { format }) => lineSink(process.stdout, format),
})

/**
 * Writes events as lines to a stream that somebody else owns: `close` leaves it open.
 *
 * A reader that stands still fills the backlog; from then on deliveries wait instead of adding to it, so that retries of the same event cannot
 * grow it without bound. The backlog is counted here because the stream's own `drain` never comes after a failed write.
 */
export function lineSink(stream: Writable, format: EventFormat): Sink {
  let backlog = 0
  const waiting = new Set<() => void>()
  stream.on('error', ignore)

  const isFull = (): boolean => backlog > backlogLimit

  const room = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        waiting.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      waiting.add(done)
      signal.addEventListener('abort', done)
    })

  const write = (line: string): Promise<DeliveryOutcome> =>
    new Promise((resolve) => {
      backlog += line.length
      stream.write(line, (error) => {
        backlog -= line.length
        resolve(error ? broken(error) : delivered)
        for (const resume of waiting) resume()
      })
    })

  const writeInTurn = async (line: string, signal: AbortSignal): Promise<DeliveryOutcome> => {
    while (isFull() && !signal.aborted) await room(signal)
    return signal.aborted ? interrupted(signal) : write(line)
  }

  return {
    deliver: (event, { signal }) => untilAborted(signal, () => writeInTurn(format.write(event) + '\n', signal)),
    async check() {
      if (stream.writable) return { ok: true, detail: 'standard output is open' }
      return {
        ok: false,
        detail: 'standard output is closed',
        cure: 'start the program with its standard output connected to a reader or a file that stays open',
      }
    },
    async close() {
      // What an interrupted delivery left in the backlog may still fail, and must not end the process then.
      if (backlog === 0) stream.off('error', ignore)
    },
  }
}

/** The write callback tells of failures already; an 'error' event without a listener would end the process. */
function ignore(): void {}

/** Whoever read standard output went away (EPIPE), or the file behind it cannot grow: nothing that a quick retry cures. */
function broken(error: Error): DeliveryOutcome {
  const code = 'code' in error ? String(error.code) : error.message
  return { status: 'retry', because: 'refused', code: 'stdout_broken', detail: `standard output cannot be written: ${code}` }
}
