import type { Writable } from 'node:stream'
import type { Logger } from '../log.ts'

/**
 * SIGTERM and SIGINT for a command that runs on: the first aborts `signal`, for a graceful end, a second ends the process at once with the
 * status a shell expects (128 + number). The only place that handles signals.
 *
 * `output` is what the command goes on telling, where it does nothing else: its reader going away (`| head`) is a reason to end as well.
 */
export function stopSignal(log?: Logger, output?: Writable): { signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const onLostReader = (): void => controller.abort()
  const onSignal = (name: 'SIGINT' | 'SIGTERM'): void => {
    if (controller.signal.aborted) {
      log?.warn({ signal: name }, 'second signal: ending at once; what was not delivered waits in the outbox')
      process.exit(name === 'SIGINT' ? 130 : 143)
    }
    log?.info({ signal: name }, 'stopping')
    controller.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  output?.on('error', onLostReader)
  return {
    signal: controller.signal,
    release() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
      output?.off('error', onLostReader)
    },
  }
}
