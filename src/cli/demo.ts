import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { number } from './number.ts'
import { stopSignal } from './signals.ts'
import { table } from './table.ts'

interface DemoOptions {
  readonly keep?: boolean
  readonly scenario: string
  readonly speed: number
  readonly json?: boolean
}

export const add: AddCommand = (program, run) => {
  program
    .command('demo')
    .description('everything on this machine, nothing else needed: tells the story of a live migration and a user reboot')
    .option('--keep', 'goes on running after the story, until interrupted')
    .option('--scenario <name>', 'another ready scenario, or the path of a scenario file', 'demo')
    .option('--speed <n>', 'scenario seconds per real second', number(0.01, 100_000), 60)
    .option('--json', 'machine-readable closing table')
    .action((options: DemoOptions) =>
      run(async () => {
        const { runDemo } = await import('../simulator/demo/demo.ts')
        const { createLog } = await import('../log.ts')
        const stop = stopSignal(undefined, process.stdout)
        const begun = performance.now()
        const say = (line: string): void => {
          const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(5)
          ;(options.json === true ? process.stderr : process.stdout).write(`${seconds} s  ${line}\n`)
        }
        const program = process.argv[1] ?? ''
        const { received, complete } = await runDemo({
          ...options,
          keep: options.keep === true,
          program,
          signal: stop.signal,
          say,
          log: await createLog('warn'),
        })
        stop.release()
        if (options.json === true) {
          const sinks = received.map(({ sink, ids, copies, kinds }) => ({ sink, events: ids.size, copies, kinds }))
          process.stdout.write(`${JSON.stringify({ complete, sinks }, null, 2)}\n`)
        } else {
          const kinds = [...new Set(received.flatMap((one) => Object.keys(one.kinds)))]
          const rows = received.map((one) => [
            one.sink,
            String(one.ids.size),
            ...kinds.map((kind) => String(one.kinds[kind] ?? 0)),
            String(one.copies),
          ])
          process.stdout.write(`\n${table(['sink', 'events', ...kinds, 'copies'], rows)}\n\n`)
          process.stdout.write(complete ? 'Every sink got every event.\n' : 'Not every sink got every event: see the lines above.\n')
        }
        return complete ? exit.done : exit.failed
      }),
    )
}
