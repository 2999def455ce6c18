import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run, temporaryFolder } from '../support/program.ts'

const commands = [
  'run',
  'demo',
  'check',
  'doctor',
  'events',
  'status',
  'outbox',
  'outbox list',
  'outbox show',
  'outbox replay',
  'outbox drop',
  'simulate',
  'simulate imds',
  'simulate broker',
  'record',
  'schema',
]

function configFile(text: string): string {
  const path = join(temporaryFolder(), 'config.yaml')
  writeFileSync(path, text)
  return path
}

it('tells every mistake of a configuration at once, each with its path, and exits with 2', async () => {
  const config = configFile(`
imds: { pollIntervalMs: 5 }
heartbeat: { intervalSeconds: often }
scope: planet
sinks:
  - { name: hook, type: webhook, url: ops.example }
  - { name: hook, type: file, path: /tmp/x.jsonl, colour: red }
`)
  const all = await Promise.all([
    run(['check', '--config', config]),
    run(['run', '--config', config]),
    run(['run', '--once', '--config', config]),
  ])
  for (const { status, stdout, stderr } of all) {
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^foreshock: 5 mistakes in .*config\.yaml:$/),
      expect.stringMatching(/^ {2}imds\.pollIntervalMs: expected .*100.*, got 5$/),
      expect.stringMatching(/^ {2}scope: expected .*"group".*"vm".*, got "planet"$/),
      expect.stringMatching(/^ {2}heartbeat\.intervalSeconds: expected number, got "often"$/),
      expect.stringMatching(/^ {2}sinks\[0\]\.url: /),
      expect.stringMatching(/^ {2}sinks\[1\]\.colour: unknown key/),
    ])
  }
})

it.for([
  {
    what: 'a file that is not there',
    args: ['check', '--config', '/nowhere/config.yaml'],
    says: /\/nowhere\/config\.yaml cannot be read: ENOENT/,
  },
  { what: 'an unknown command', args: ['forward'], says: /forward/ },
  { what: 'an unknown subcommand', args: ['outbox', 'burn'], says: /burn/ },
  { what: 'an unknown option', args: ['run', '--twice'], says: /unknown option '--twice'/ },
  { what: 'an option without its value', args: ['run', '--config'], says: /argument missing/ },
  { what: 'a missing argument', args: ['outbox', 'show'], says: /missing required argument 'id'/ },
  { what: 'a missing option', args: ['record'], says: /required option '--out <file>' not specified/ },
  {
    what: 'a number out of range',
    args: ['simulate', 'imds', '--port', '70000'],
    says: /expected a whole number from 0 to 65535, got "70000"/,
  },
  {
    what: 'an unknown scenario',
    args: ['simulate', 'imds', '--port', '0', '--scenario', 'flood'],
    says: /expected a scenario file or one of cancelled, .*, got flood/,
  },
  { what: 'an unknown schema', args: ['schema', 'tables'], says: /choices are config, event/ },
  { what: 'no command at all', args: [], says: /Usage: foreshock/ },
])('exits with 2 at $what, and says on stderr what was expected', async ({ args, says }) => {
  const { status, stdout, stderr } = await run(args)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toMatch(says)
  expect(stderr).not.toMatch(/^\s+at /m)
})

it('prints its version and exits with 0', async () => {
  expect(await run(['--version'])).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' })
})

it('explains every command with --help on stdout, and exits with 0', async () => {
  const helps = await Promise.all(
    ['', ...commands].map(async (command) => [command, await run([...command.split(' ').filter(Boolean), '--help'])] as const),
  )
  for (const [command, help] of helps) {
    expect(help).toEqual({ status: 0, stdout: expect.stringContaining(`Usage: foreshock ${command}`.trimEnd()), stderr: '' })
  }
  const [, whole] = helps[0] ?? []
  for (const command of commands.filter((name) => !name.includes(' '))) expect(whole?.stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'))
})

it('says in one line that Node is too old, before anything else, and exits with 2', async () => {
  const older = `Object.defineProperty(process.versions, 'node', { value: '22.11.0' })`
  const node = ['--import', `data:text/javascript,${encodeURIComponent(older)}`]
  for (const args of [['--version'], ['run'], ['nonsense']]) {
    const { status, stdout, stderr } = await run(args, { node })
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(/^foreshock needs Node 24 or newer, this is 22\.11\.0: .*\n$/)
  }
})
