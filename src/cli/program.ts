import { Command, CommanderError } from 'commander'
import { ForeshockError } from '../../sinks/error.ts'
import { version } from '../version.ts'
import { exit, exitOf } from './exit.ts'

/** A command: adds itself to the program; its action gives the exit status. Heavy parts are imported inside the action. */
export type AddCommand = (program: Command, run: (action: () => Promise<number>) => Promise<void>) => void

/** Runs the command line and gives the exit status. Never throws: what is unforeseen is printed whole, with status 1. */
export async function main(argv: readonly string[]): Promise<number> {
  let status: number = exit.done
  const program = new Command('foreshock')
    .description('Forwards Azure Scheduled Events as CloudEvents: nothing lost, every copy recognisable, an honest verdict at the end.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(see --help)')
    .action(() => program.help({ error: true }))

  const run = async (action: () => Promise<number>): Promise<void> => {
    status = await action()
  }
  for (const add of await commands()) add(program, run)

  process.stdout.on('error', onLostOutput)
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exit.done : exit.usage
    if (error instanceof ForeshockError) {
      process.stderr.write(`foreshock: ${error.message}\n`)
      return exitOf[error.code]
    }
    process.stderr.write(`foreshock: unforeseen failure: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return exit.failed
  }
  return status
}

/**
 * Whoever read the output has had enough of it (`| head`): no failure of ours. A command that has to know (the stdout sink, a demo) listens
 * beside this and judges for itself.
 */
function onLostOutput(error: Error): void {
  if (('code' in error && error.code === 'EPIPE') || process.stdout.listenerCount('error') > 1) return
  throw error
}

async function commands(): Promise<AddCommand[]> {
  const modules = await Promise.all([
    import('./run.ts'),
    import('./demo.ts'),
    import('./check.ts'),
    import('./doctor.ts'),
    import('./events.ts'),
    import('./status.ts'),
    import('./approve.ts'),
    import('./hold.ts'),
    import('./keygen.ts'),
    import('./outbox.ts'),
    import('./simulate.ts'),
    import('./record.ts'),
    import('./schema.ts'),
  ])
  return modules.map((module) => module.add)
}
