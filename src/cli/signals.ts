import type { Logger } from '../log.ts'

/**
 * SIGTERM and SIGINT for a command that runs on: the first aborts `signal`, for a graceful end, a second ends the process at once with the
 * status a shell expects (128 + number). The only place that handles signals.
 */
export function stopSignal(log?: Logger): { signal: AbortSignal; release(): void } {
  const controller = new AbortController()
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
  return {
    signal: controller.signal,
    release() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
