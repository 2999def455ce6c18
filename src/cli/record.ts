import type { AddCommand } from './program.ts'
import { ForeshockError } from '../../sinks/error.ts'
import { exit } from './exit.ts'
import { number } from './number.ts'
import { stopSignal } from './signals.ts'

interface RecordOptions {
  readonly out: string
  readonly config?: string
  readonly endpoint?: string
  readonly interval?: number
  readonly seconds?: number
}

export const add: AddCommand = (program, run) => {
  program
    .command('record')
    .description('captures what a real endpoint answers as a scenario that `simulate imds` replays; ends at an interrupt')
    .requiredOption('--out <file>', 'scenario file to write; it must not exist yet')
    .option('--config <file>', 'configuration file, for endpoint and API version')
    .option('--endpoint <origin>', 'another endpoint than the configured one')
    .option('--interval <ms>', 'milliseconds from one request to the next', number(100, 3_600_000, { whole: true }))
    .option('--seconds <n>', 'ends by itself after so long', number(1, 31_536_000))
    .action((options: RecordOptions) => run(() => record(options)))
}

async function record(options: RecordOptions): Promise<number> {
  const { loadConfig } = await import('../config/load.ts')
  const { createLog } = await import('../log.ts')
  const { recordScenario } = await import('../simulator/imds/recorder.ts')
  const { imds } = await loadConfig(options.config, process.env)
  const log = await createLog('info')
  const endpoint = await resolveEndpoint(options.endpoint ?? imds.endpoint)
  const stop = stopSignal(log)
  const signal = options.seconds === undefined ? stop.signal : AbortSignal.any([stop.signal, AbortSignal.timeout(options.seconds * 1000)])
  try {
    const { polls, frames } = await recordScenario({
      endpoint,
      apiVersion: imds.apiVersion,
      signal,
      out: options.out,
      intervalMs: options.interval ?? imds.pollIntervalMs,
      log,
    })
    process.stderr.write(
      `${options.out}: ${frames} frames from ${polls} polls; play it with: foreshock simulate imds --scenario ${options.out}\n`,
    )
    return exit.done
  } finally {
    stop.release()
  }
}

async function resolveEndpoint(endpoint: string): Promise<string> {
  if (endpoint !== 'discover') return endpoint
  const { findEndpoint } = await import('../imds/find-endpoint.ts')
  const { agent } = await import('../version.ts')
  const found = await findEndpoint({ env: process.env, agent })
  if (!found.ok) throw new ForeshockError('unreachable', found.detail)
  return found.endpoint
}
