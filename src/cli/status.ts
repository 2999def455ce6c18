import type { AddCommand } from './program.ts'
import { ForeshockError } from '../../sinks/error.ts'
import { exit } from './exit.ts'

export const add: AddCommand = (program, run) => {
  program
    .command('status')
    .description('state of the running forwarder, from its admin endpoint, as JSON')
    .option('--config <file>', 'configuration file')
    .option('--json', 'machine-readable output, as it always is')
    .action((options: { config?: string }) =>
      run(async () => {
        const { loadConfig } = await import('../config/load.ts')
        const { admin } = await loadConfig(options.config, process.env)
        if (admin.listen === false)
          throw new ForeshockError('config_invalid', 'admin.listen is false: there is no endpoint to ask; set it to 127.0.0.1:9464')
        if (admin.listen.endsWith(':0'))
          throw new ForeshockError(
            'config_invalid',
            `admin.listen is ${admin.listen}, so the port is only in the log of the forwarder: set a fixed one`,
          )
        const { Client } = await import('undici')
        const client = new Client(`http://${admin.listen}`)
        try {
          const answer = await client.request({ path: '/status', method: 'GET', headersTimeout: 5_000, bodyTimeout: 5_000 })
          process.stdout.write(await answer.body.text())
          return answer.statusCode === 200 ? exit.done : exit.failed
        } catch (cause) {
          const why = cause instanceof Error ? cause.message : String(cause)
          throw new ForeshockError(
            'unreachable',
            `no forwarder answers on ${admin.listen} (${why}): is it running with this configuration?`,
            { cause },
          )
        } finally {
          await client.destroy()
        }
      }),
    )
}
