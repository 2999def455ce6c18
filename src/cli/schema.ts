import { Argument } from 'commander'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('schema')
    .description('JSON Schema of the configuration file, or of what is published')
    .addArgument(new Argument('[what]', 'which schema').choices(['config', 'event']).default('config'))
    .action((what: string) =>
      run(async () => {
        const schema =
          what === 'event'
            ? (await import('../events/schemas.ts')).eventSchemas()
            : await (await import('../config/json-schema.ts')).configJsonSchema()
        process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`)
        return exit.done
      }),
    )
}
