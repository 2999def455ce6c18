import { ForeshockError } from '../../sinks/error.ts'
import type { Config } from '../config/load.ts'
import type { Logger } from '../log.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { stopSignal } from './signals.ts'
import { systemd } from './systemd.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('run')
    .description('the forwarder: polls IMDS and delivers to every sink, until SIGTERM')
    .option('--config <file>', 'configuration file')
    .option('--once', 'polls once, delivers what is due, exits: 69 where IMDS gave no document, 75 where something still waits')
    .action((options: { config?: string; once?: boolean }) =>
      run(async () => {
        const { loadConfig } = await import('../config/load.ts')
        const { createLog } = await import('../log.ts')
        const config = await loadConfig(options.config, process.env)
        const log = await createLog(config.log.level)
        return options.once === true ? runOnce(config, log) : runOn(config, log)
      }),
    )
}

async function create(config: Config, log: Logger) {
  const { createForwarder } = await import('../forwarder.ts')
  const { readBootId } = await import('../imds/boot-id.ts')
  // Where the platform has no boot id, whoever starts the program may know of one.
  const bootId = process.env['FORESHOCK_BOOT_ID'] ?? (await readBootId())
  return await createForwarder({ config, log, bootId, env: process.env })
}

/** A state file that is damaged while it is in use ends the forwarder; a fresh one takes over in the same process, unless that fails at once too. */
const leastUptimeMs = 10_000

async function runOn(config: Config, log: Logger): Promise<number> {
  const stop = stopSignal(log)
  // A promise that somebody's SDK left behind must not end the other sinks; what it was about comes back by its own retry.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a rejected promise that nobody handled: please report this'))
  try {
    for (;;) {
      const startedAt = performance.now()
      try {
        await runUntil(stop.signal, config, log)
        return exit.done
      } catch (error) {
        const damaged = error instanceof ForeshockError && error.code === 'state_unusable'
        if (!damaged || performance.now() - startedAt < leastUptimeMs) throw error
        log.error({ code: error.code }, `starting over: ${error.message}`)
      }
    }
  } finally {
    stop.release()
  }
}

async function runUntil(signal: AbortSignal, config: Config, log: Logger): Promise<void> {
  const { version } = await import('../version.ts')
  const forwarder = await create(config, log)
  const wellness = (): string => {
    const { ready, reasons } = forwarder.status()
    return ready ? `forwarding to ${config.sinks.length} sinks` : reasons.join('; ')
  }
  const told = systemd(process.env, wellness, (message) => log.warn({}, message))
  try {
    forwarder.start()
    const { imds, state, sinks } = config
    log.info(
      { version, config: config.file, imds: imds.endpoint, state: state.path, sinks: sinks.map(({ name }) => name) },
      'foreshock runs',
    )
    told.ready(wellness())
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.race([stopped, forwarder.failed])
    told.stopping()
    await forwarder.stop()
  } finally {
    told.close()
    await forwarder.close()
  }
}

async function runOnce(config: Config, log: Logger): Promise<number> {
  // It ends by itself in a moment: an address of its own would only be in the way of the resident forwarder's.
  const stop = stopSignal(log)
  const forwarder = await create({ ...config, admin: { listen: false } }, log)
  try {
    const { imds, stored, waiting } = await forwarder.once({ signal: stop.signal })
    if (imds.kind === 'failure') {
      log.error({ reason: imds.reason }, `IMDS gave no document: ${imds.detail}`)
      return exit.unreachable
    }
    if (waiting > 0) log.warn({ waiting }, 'not everything could be delivered: the rest waits in the outbox for the next run')
    return stored && waiting === 0 ? exit.done : exit.tryAgain
  } catch (error) {
    if (!stop.signal.aborted) throw error
    log.warn({}, 'stopped before everything was done: the next run goes on')
    return exit.tryAgain
  } finally {
    await forwarder.close()
    stop.release()
  }
}
