import type { Finding } from '../doctor.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('doctor')
    .description('tries each part for real: IMDS, name, state file, clock, every sink, control queue; one line each, with the cure')
    .option('--config <file>', 'configuration file')
    .option('--json', 'machine-readable output')
    .action((options: { config?: string; json?: boolean }) =>
      run(async () => {
        const findings = await examine(options.config)
        process.stdout.write(options.json === true ? `${JSON.stringify(findings, null, 2)}\n` : `${findings.map(line).join('\n')}\n`)
        return findings.some(({ state }) => state === 'bad') ? exit.failed : exit.done
      }),
    )
}

async function examine(file: string | undefined): Promise<Finding[]> {
  const { loadConfig } = await import('../config/load.ts')
  const { connectImds } = await import('../imds/connect.ts')
  const { hostDate } = await import('../imds/host-date.ts')
  const { createLog } = await import('../log.ts')
  const { eventFormat } = await import('../registry.ts')
  const { selfOpening } = await import('../sink-opener.ts')
  const { agent } = await import('../version.ts')
  const { examineClock, examineImds, examineSink, examineState } = await import('../doctor.ts')
  const config = await loadConfig(file, process.env)
  const findings: Finding[] = [{ part: 'configuration', state: 'ok', detail: config.file ?? 'none: the defaults' }]

  const client = connectImds({ ...config.imds, agent, env: process.env })
  try {
    findings.push(...(await examineImds(client, config.identity)))
  } finally {
    await client.close()
  }
  if (config.imds.endpoint !== 'discover') findings.push(examineClock(await hostDate(config.imds.endpoint, agent), Date.now()))
  findings.push(...(await examineState(config.state.path, Date.now)))

  // What a sink would log is said by its finding.
  const log = await createLog('silent')
  for (const configured of config.sinks) {
    const format = eventFormat(configured.format, () => null)
    const sink = selfOpening(configured, {
      name: configured.name,
      log,
      now: Date.now,
      agent,
      format,
      env: process.env,
      maxAgeSeconds: configured.maxAgeSeconds,
    })
    try {
      findings.push(await examineSink(configured.name, sink, Math.max(configured.timeoutSeconds, 15) * 1000))
    } finally {
      await sink.close()
    }
  }
  if (config.control !== undefined) {
    const { examineControl } = await import('../approvals/examine.ts')
    const { ok, detail } = await examineControl(config.control, process.env)
    const cure = 'check control.namespace, queue and auth; the identity needs the role Azure Service Bus Data Receiver'
    findings.push({ part: 'control queue', state: ok ? 'ok' : 'bad', detail, ...(!ok && { cure }) })
  }
  return findings
}

function line({ part, state, detail, cure }: Finding): string {
  const head = `${{ ok: 'ok  ', note: 'note', bad: 'BAD ' }[state]}  ${part.padEnd(14)}  ${detail}`
  return cure === undefined ? head : `${head}\n${' '.repeat(22)}cure: ${cure}`
}
