import { execFile } from 'node:child_process'

/** What systemd is told, and nothing where this process does not run under it. */
export interface Systemd {
  ready(status: string): void
  stopping(): void
  close(): void
}

/**
 * sd_notify by way of `systemd-notify`, since Node has no datagram sockets of the UNIX family; the unit allows it with NotifyAccess=all.
 * The watchdog is fed at a third of WATCHDOG_USEC, from the event loop: a loop that hangs stops feeding and is restarted.
 *
 * Source: sd_notify(3), systemd-notify(1)
 */
export function systemd(env: NodeJS.ProcessEnv, alive: () => string, warn: (message: string) => void): Systemd {
  if (env['NOTIFY_SOCKET'] === undefined) return { ready() {}, stopping() {}, close() {} }

  let warned = false
  const notify = (...lines: string[]): void => {
    execFile('systemd-notify', [`--pid=${process.pid}`, ...lines], (error) => {
      if (error !== null && !warned)
        warn(`systemd cannot be told (${error.message.trim()}): install systemd-notify, or set Type=exec in the unit`)
      warned ||= error !== null
    })
  }
  const watchdogMs = Number(env['WATCHDOG_USEC'] ?? 0) / 1000
  const timer = watchdogMs > 0 ? setInterval(() => notify('WATCHDOG=1', statusLine(alive())), Math.max(1000, watchdogMs / 3)) : undefined
  timer?.unref()

  return {
    ready: (text) => notify('--ready', statusLine(text)),
    stopping: () => notify('STOPPING=1'),
    close: () => clearInterval(timer),
  }
}

const statusLine = (text: string): string => `STATUS=${text.replaceAll(/\s+/g, ' ').slice(0, 200)}`
