import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ForeshockError } from '../../sinks/error.ts'
import { configJsonSchema } from '../../src/config/json-schema.ts'
import { loadConfig, parseConfig } from '../../src/config/load.ts'

const parse = (text: string, env: NodeJS.ProcessEnv = {}) => parseConfig(text, { env, file: null })

async function mistakes(text: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const error: unknown = await parse(text, env).then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (!(error instanceof ForeshockError)) throw new Error(`expected a ForeshockError, got ${String(error)}`)
  expect(error.code).toBe('config_invalid')
  return error.message.split('\n').slice(1)
}

describe('a configuration', () => {
  it('that is empty means IMDS and the stdout sink', async () => {
    const config = await parse('')
    expect(config.imds).toEqual({
      endpoint: 'http://169.254.169.254',
      apiVersion: '2020-07-01',
      pollIntervalMs: 1000,
      unreachableAfterFailures: 10,
    })
    expect(config.sinks.map((sink) => [sink.name, sink.type])).toEqual([['stdout', 'stdout']])
    expect(config).toMatchObject({ scope: 'group', publish: 'all', heartbeat: { intervalSeconds: 300 }, shutdownSeconds: 10 })
  })

  it('with five mistakes reports all five with their paths', async () => {
    const told = await mistakes(`
imds: { pollIntervalMs: 5 }
scope: planet
hearbeat: { intervalSeconds: 1 }
sinks:
  - { name: a, type: webhook, url: "http://example.com/hook" }
  - { name: b, type: webhok }
`)
    expect(told).toHaveLength(5)
    expect(told.join('\n')).toMatch(/imds\.pollIntervalMs: .*100.*got 5/)
    expect(told.join('\n')).toMatch(/scope: .*"group".*"vm".*got "planet"/)
    expect(told.join('\n')).toMatch(/hearbeat: unknown key/)
    expect(told.join('\n')).toMatch(/sinks\[0\]\.(url|allowHttp): /)
    expect(told.join('\n')).toMatch(/sinks\[1\]\.type: expected one of .*stdout.*got "webhok"/)
  })

  it('names a sink without a type, two sinks of one name and a sink that is no object', async () => {
    const told = await mistakes('sinks: [{ name: a }, 7, { name: b, type: stdout }, { name: b, type: stdout }]')
    expect(told).toEqual([
      expect.stringContaining('sinks[0].type: missing: expected string'),
      expect.stringContaining('sinks[1]: expected object, got 7'),
      expect.stringContaining('sinks[3].name: expected a name of its own, got "b" as in sinks[2]'),
    ])
  })

  it.each([
    ['format: ecs, mode: binary', '{ type: webhook, url: "https://siem.example/hook" }', 'mode: binary'],
    ['format: splunk-hec, template: slack', '{ type: webhook, url: "https://siem.example/hook" }', 'template'],
    [
      'format: azure-resource-log, mode: binary',
      '{ type: event-hubs, eventHub: m, namespace: c.servicebus.windows.net, auth: { type: managed-identity } }',
      'mode: binary',
    ],
  ])('that has two bodies for one sink (%s) is a mistake', async (options, sink, own) => {
    const [told] = await mistakes(`sinks: [{ name: a, ${options}, ${sink.slice(1)}]`)
    expect(told).toMatch(new RegExp(`sinks\\[0\\]\\.format: .*\`${own}\` exclude each other`))
  })

  it('fills in the environment, with defaults for what is unset or empty', async () => {
    const text = 'state: { path: "${DIR}/${FILE:-state.db}" }\nidentity: { vmName: "${NAME:-web_1}" }'
    const config = await parse(text, { DIR: '/tmp', NAME: '' })
    expect(config.state.path).toBe('/tmp/state.db')
    expect(config.identity.vmName).toBe('web_1')
  })

  it('names a variable that is not set, once', async () => {
    expect(await mistakes('sinks: [{ name: hook, type: webhook, url: "${HOOK_URL}" }]')).toEqual([
      '  sinks[0].url: the environment variable HOOK_URL is not set: set it, or give a default as ${HOOK_URL:-…}',
    ])
  })

  it('never shows what came from the environment or could be a secret', async () => {
    const told = await mistakes(
      'sinks: [{ name: hook, type: webhook, url: "${HOOK_URL}", headers: { authorization: 5 } }]\nscope: "${SCOPE}"',
      {
        HOOK_URL: 'ftp://user:hunter2@example.com',
        SCOPE: 'hunter3',
      },
    )
    expect(told.join('\n')).not.toMatch(/hunter/)
    expect(told.join('\n')).toMatch(/scope: .*got "\$\{SCOPE\}"/)
  })

  it('that is no YAML is told with line and column', async () => {
    expect(await mistakes('scope: [group')).toEqual(['  line 1, column 14: wrong indentation, or a bracket that is not closed'])
  })

  it.each(['identity: { source: " " }', String.raw`identity: { source: "a\nb" }`, String.raw`identity: { vmName: "web\0" }`])(
    'with %s, which could stand in no event, is a mistake',
    async (text) => {
      expect(await mistakes(text)).toEqual([
        expect.stringMatching(/identity\.(source|vmName): expected a text with .* no control character/),
      ])
    },
  )

  it('takes a custom sink by its path, relative to the file, and checks its options by its own schema', async () => {
    const path = join(import.meta.dirname, '../fixtures/custom-sink/config.yaml')
    const at = (text: string) => parseConfig(text, { env: {}, file: path })
    const files = await readdir(join(import.meta.dirname, '../fixtures/custom-sink'))
    const module = files.find((file) => file.startsWith('minimal-sink'))
    const config = await at(`sinks: [{ name: mine, type: ./${module}, path: /tmp/x, prefix: "> " }]`).catch((error: Error) => error)
    expect(config instanceof Error ? config.message : config.sinks[0]?.name).toMatch(/mine|unknown key/)
    await expect(at(`sinks: [{ name: mine, type: ./${module}, nonsense: 1 }]`)).rejects.toThrow(/nonsense/)
    await expect(at('sinks: [{ name: mine, type: ./missing.ts }]')).rejects.toThrow(/cannot be loaded/)
  })
})

describe('the configuration file', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'foreshock-config-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is the argument, else FORESHOCK_CONFIG', async () => {
    const [one, two] = [join(folder, 'one.yaml'), join(folder, 'two.json')]
    await writeFile(one, 'scope: vm')
    await writeFile(two, '{"scope": "group"}')
    expect((await loadConfig(one, { FORESHOCK_CONFIG: two })).scope).toBe('vm')
    expect((await loadConfig(undefined, { FORESHOCK_CONFIG: two })).file).toBe(two)
  })

  it('that was named and is not there is a mistake', async () => {
    await expect(loadConfig(join(folder, 'missing.yaml'), {})).rejects.toThrow(/missing\.yaml cannot be read/)
  })
})

describe('what is shipped', () => {
  const root = join(import.meta.dirname, '../../config')

  it('every example in config/ is a valid configuration', async () => {
    const examples = (await readdir(root)).filter((file) => file.endsWith('.yaml'))
    expect(examples.length).toBeGreaterThan(0)
    const broker = 'Endpoint=sb://example.servicebus.windows.net/;SharedAccessKeyName=name;SharedAccessKey=key'
    const env = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => (name === 'SERVICEBUS' ? broker : 'https://example.com/value') })
    for (const file of examples) {
      const config = await parseConfig(await readFile(join(root, file), 'utf8'), { env, file: join(root, file) })
      expect(config.file).toBe(join(root, file))
    }
  })

  it('the schema in config/schemas is the one that the program prints', async () => {
    const text = `${JSON.stringify(await configJsonSchema(), null, 2)}\n`
    await expect(text).toMatchFileSnapshot('../../config/schemas/config.json')
  })
})
