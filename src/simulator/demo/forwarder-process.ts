import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import { parseCloudEvent } from './webhook-receiver.ts'

export interface ForwarderProcess {
  /** Resolves with the exit status, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>
  signal(name: NodeJS.Signals): void
}

/** The real forwarder as a process of its own, so that the demo can end it as a power cut would. `onEvent` gets what its stdout sink prints. */
export function startForwarder(options: {
  readonly program: string
  readonly configFile: string
  readonly bootId: string
  readonly onEvent: (event: CloudEvent) => void
}): ForwarderProcess {
  const child = spawn(process.execPath, [options.program, 'run', '--config', options.configFile], {
    env: { ...process.env, FORESHOCK_BOOT_ID: options.bootId },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => options.onEvent(parseCloudEvent(JSON.parse(line))))
  const read = new Promise<void>((resolve) => lines.once('close', resolve))
  return {
    ended: new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, signal) => void read.then(() => resolve(status ?? signal ?? 0)))
    }),
    signal: (name) => void child.kill(name),
  }
}
