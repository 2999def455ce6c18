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

interface BrokerOptions {
  readonly port: number
  readonly host?: string
  readonly entities?: string
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
  simulate
    .command('broker')
    .description('an Event Hubs and Service Bus namespace over AMQP, for the unmodified SDKs; in memory; faults can be typed at it (help)')
    .option('--port <n>', 'port; 0 picks a free one', number(0, 65_535, { whole: true }), 5672)
    .option('--host <address>', 'address to listen on; made for tests, not for a network (default: 127.0.0.1)')
    .option('--entities <file>', 'YAML file with the hubs, queues and topics that exist')
    .option('--json', 'machine-readable output')
    .action((options: BrokerOptions) => run(() => simulateBroker(options)))
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
  const stop = stopSignal(log)
  const vms = scenario.vms.map((vm, index) => ({ vm: vm.name, url: simulator.urls[index] ?? simulator.url }))
  const rows = vms.map(({ vm, url }) => [vm, url])
  process.stdout.write(
    json === true
      ? `${JSON.stringify({ scenario: scenario.name, vms })}\n`
      : `${scenario.name}: ${scenario.description}\n${table(['vm', 'endpoint'], rows)}\n`,
  )
  void simulator.finished.then((how) => {
    if (how === 'ended') log.info({ scenario: scenario.name }, 'the scenario is at its end; the last document goes on being served')
  })
  await aborted(stop.signal)
  await simulator.close()
  stop.release()
  return exit.done
}

async function simulateBroker({ port, host, entities: file, json }: BrokerOptions): Promise<number> {
  const { loadEntities } = await import('../simulator/broker/entities.ts')
  const { createInterface } = await import('node:readline')
  const { startBroker } = await import('../simulator/broker/broker.ts')
  const { faultCommand, faultCommands } = await import('../simulator/broker/fault-command.ts')
  const { createLog } = await import('../log.ts')
  const log = await createLog('info')
  const entities = await loadEntities(file)
  const broker = await startBroker({ entities, port, log, ...(host !== undefined && { host }) })
  const { eventHubs, queues, topics } = entities
  const rows = [
    ...eventHubs.map(({ name, partitions }) => ['event hub', name, `${partitions} partitions`]),
    ...queues.map(({ name, requiresSession }) => ['queue', name, requiresSession ? 'with sessions' : '']),
    ...topics.map(({ name, subscriptions }) => ['topic', name, `subscriptions ${subscriptions.map((one) => one.name).join(', ')}`]),
  ]
  const connectionString = broker.connectionString()
  const told = { connectionString, entities: rows.map(([kind, name]) => ({ kind, name })) }
  const text = `connection string: ${connectionString}\n\n${table(['kind', 'entity', ''], rows)}\n`
  const stop = stopSignal(log)
  process.stdout.write(json === true ? `${JSON.stringify(told)}\n` : text)
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    if (line.trim() === 'help') process.stderr.write(`${table(['command', 'does'], faultCommands)}\n`)
    else if (line.trim() !== '') void faultCommand(broker, line).then((answer) => process.stderr.write(`${answer}\n`))
  })
  await aborted(stop.signal)
  lines.close()
  process.stdin.unref()
  await broker.close()
  stop.release()
  return exit.done
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
