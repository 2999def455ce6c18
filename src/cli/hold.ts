import { ask, askOptions, type AskOptions } from './approve.ts'
import type { AddCommand } from './program.ts'

export const add: AddCommand = (program, run) => {
  const command = program
    .command('hold')
    .description('keeps an event from being approved by anybody, here or through the queue; Azure still starts it at NotBefore')
    .option('--release', 'lifts the hold; only on its own machine')
  askOptions(command).action((event: string, options: AskOptions & { release?: boolean }) =>
    run(() => ask(options.release === true ? 'release' : 'hold', event, options)),
  )
}
