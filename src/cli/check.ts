import type { Config } from '../config/load.ts'
import type { ConfiguredSink } from '../config/sinks.ts'
import { span } from '../span.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { table } from './table.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('check')
    .description('reads and explains the configuration; tells every mistake at once')
    .option('--config <file>', 'configuration file')
    .option('--json', 'machine-readable output')
    .action((options: { config?: string; json?: boolean }) =>
      run(async () => {
        const { loadConfig } = await import('../config/load.ts')
        const { intervalWarning } = await import('../imds/schedule.ts')
        const config = await loadConfig(options.config, process.env)
        const warning = intervalWarning(config.imds.pollIntervalMs)
        const warnings = warning === undefined ? [] : [warning]
        process.stdout.write(options.json === true ? `${JSON.stringify(machine(config, warnings), null, 2)}\n` : explain(config, warnings))
        return exit.done
      }),
    )
}

const scopes = {
  group: 'one event of a scale set is one CloudEvent, whichever VM tells it',
  vm: 'each VM tells its own CloudEvent, as evidence per machine',
}
const publishers = {
  all: 'every event that this VM sees is published; ids make the copies of several VMs one',
  own: 'only events that name this VM are published',
  leader: 'only events that name this VM first are published; silent when that machine is',
}

/** Options of sinks and credentials of the control queue are left out on purpose: they may hold secrets. */
function machine({ sinks, control, ...config }: Config, warnings: readonly string[]): unknown {
  const shown = sinks.map(({ definition: _, options: __, ...sink }) => sink)
  if (control === undefined) return { ...config, sinks: shown, warnings }
  const { auth, ...queue } = control
  return { ...config, control: { ...queue, auth: { type: auth.type } }, sinks: shown, warnings }
}

function explain(config: Config, warnings: readonly string[]): string {
  const { imds, heartbeat, admin } = config
  const lines: [string, string][] = [
    ['configuration', config.file ?? 'none: the defaults'],
    [
      'imds',
      `${imds.endpoint}, api-version ${imds.apiVersion}, every ${imds.pollIntervalMs} ms; unreachable after ${imds.unreachableAfterFailures} failures`,
    ],
    ['scope', `${config.scope}: ${scopes[config.scope]}`],
    ['publish', `${config.publish}: ${publishers[config.publish]}`],
    ['types', `${config.events.typePrefix}.scheduledevent.*, ${config.events.typePrefix}.forwarder.*`],
    ['state', config.state.path],
    ['approvals', approvals(config)],
    ['heartbeat', heartbeat.intervalSeconds === 0 ? 'off' : `every ${span(heartbeat.intervalSeconds * 1000)}`],
    ['admin', admin.listen === false ? 'off' : admin.listen],
    ['shutdown', `flushes for at most ${span(config.shutdownSeconds * 1000)}`],
  ]
  const sinks = table(
    ['sink', 'type', 'gets', 'gives up after', 'at once', 'time-out'],
    config.sinks.map((sink) => [
      sink.name,
      sink.type,
      gets(sink),
      span(sink.maxAgeSeconds * 1000),
      String(sink.concurrency),
      `${sink.timeoutSeconds} s`,
    ]),
  )
  const head = lines.map(([name, value]) => `${name.padEnd(14)} ${value}`).join('\n')
  const warned = warnings.map((warning) => `\nwarning: ${warning}`).join('')
  return `${head}\n\n${config.sinks.length === 0 ? 'no sinks: nothing is published' : sinks}\n${warned}${warned === '' ? '' : '\n'}\nThe configuration is valid.\n`
}

function approvals({ approvals: given, control }: Config): string {
  if (given === undefined && control === undefined) return 'off'
  const { events = 'own', maxResources = 1, eventTypes = [], auto = [] } = given ?? {}
  const where = control === undefined ? [] : [`from ${control.queue ?? `${control.topic}/${control.subscription}`} (${control.trust.type})`]
  const types = given === undefined ? [] : [eventTypes.join(', ')]
  return [...where, ...types, `${events} events`, `at most ${maxResources} machines each`, `${auto.length} policy rules`].join('; ')
}

function gets({ filter }: ConfiguredSink): string {
  if (filter === undefined) return 'everything'
  const parts = Object.entries(filter).map(([part, wanted]) => `${part} ${Array.isArray(wanted) ? wanted.join(' or ') : String(wanted)}`)
  return parts.join(', ')
}
