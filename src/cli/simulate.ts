import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { number } from './number.ts'
import { stopSignal } from './signals.ts'
import { table } from './table.ts'

interface ImdsOptions {
  readonly port: number
  readonly host?: string
  readonly scenario: string
  readonly speed: number
  readonly rateLimit?: number
  readonly list?: boolean
  readonly json?: boolean
}

export const add: AddCommand = (program, run) => {
  const simulate = program.command('simulate').description('stand-ins for the services around the forwarder, to develop against')
  simulate
    .command('imds')
    .description('an IMDS that plays a scenario: all API versions, approvals, instance metadata, faults')
    .option('--port <n>', 'port of the first VM; the others follow; 0 picks free ones', number(0, 65_535, { whole: true }), 8169)
    .option('--host <address>', 'address to listen on; whoever reaches it may approve (default: 127.0.0.1)')
    .option('--scenario <name>', 'ready scenario, or path of a scenario file', 'live-migration')
    .option('--speed <n>', 'scenario seconds per real second', number(0.01, 100_000), 1)
    .option('--rate-limit <n>', 'requests per second beyond which the answer is 429; IMDS allows 5', number(1, 100_000))
    .option('--list', 'the ready scenarios')
    .option('--json', 'machine-readable output')
    .action((options: ImdsOptions) => run(() => (options.list === true ? listScenarios(options.json === true) : simulateImds(options))))
}

async function listScenarios(json: boolean): Promise<number> {
  const { readyScenarios } = await import('../simulator/imds/scenario-file.ts')
  const scenarios = await readyScenarios()
  const rows = scenarios.map(({ name, description }) => [name, description])
  process.stdout.write(json ? `${JSON.stringify(scenarios, null, 2)}\n` : `${table(['scenario', 'story'], rows)}\n`)
  return exit.done
}

async function simulateImds({ port, host, scenario: name, speed, rateLimit, json }: ImdsOptions): Promise<number> {
  const { loadScenario } = await import('../simulator/imds/scenario-file.ts')
  const { startImdsSimulator } = await import('../simulator/imds/server.ts')
  const { createLog } = await import('../log.ts')
  const log = await createLog('info')
  const scenario = await loadScenario(name)
  const simulator = await startImdsSimulator({
    scenario,
    port,
    speed,
    log,
    ...(host !== undefined && { host }),
    ...(rateLimit !== undefined && { rateLimit }),
  })
  const vms = scenario.vms.map((vm, index) => ({ vm: vm.name, url: simulator.urls[index] ?? simulator.url }))
  const rows = vms.map(({ vm, url }) => [vm, url])
  process.stdout.write(
    json === true
      ? `${JSON.stringify({ scenario: scenario.name, vms })}\n`
      : `${scenario.name}: ${scenario.description}\n${table(['vm', 'endpoint'], rows)}\n`,
  )
  const stop = stopSignal(log)
  void simulator.finished.then((how) => {
    if (how === 'ended') log.info({ scenario: scenario.name }, 'the scenario is at its end; the last document goes on being served')
  })
  await new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve(), { once: true }))
  await simulator.close()
  stop.release()
  return exit.done
}
