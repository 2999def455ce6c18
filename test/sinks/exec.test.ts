import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { DeliveryOutcome, Sink, SinkLog } from '../../sinks/contract.ts'
import exec from '../../sinks/exec.ts'
import { arrivedFromJson } from '../support/arrived.ts'
import { sampleEvent } from '../support/sample-event.ts'
import { describeSinkConformance, testContext, unhurried } from '../support/sink-conformance.ts'

/** A program of a test: it puts its stdin into a file of its own, then does what `behaviour` says. */
async function writeProgram(folder: string, behaviour: string): Promise<void> {
  const path = join(folder, 'program')
  await writeFile(path, `#!/bin/sh\n${behaviour}\n`)
  await chmod(path, 0o755)
}

/** A file that appears whole, named for the process that wrote it. */
const keepInput = (folder: string): string => `mkdir -p ${folder}/got; cat > ${folder}/got/.$$ && mv ${folder}/got/.$$ ${folder}/got/$$`

async function startFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'foreshock-exec-'))
  await mkdir(join(folder, 'got'))
  await writeProgram(folder, keepInput(folder))
  return folder
}

/** Resolves once a file of that name is in the folder. */
async function appears(folder: string, name: string): Promise<void> {
  const watcher = watch(folder)
  try {
    while (!existsSync(join(folder, name)))
      await Promise.race([once(watcher, 'change'), new Promise((resolve) => setTimeout(resolve, 100))])
  } finally {
    watcher.close()
  }
}

describeSinkConformance<string>({
  definition: exec,
  start: startFolder,
  stop: (folder) => rm(folder, { recursive: true, force: true }),
  options: (folder) => ({ command: [join(folder, 'program')] }),
  async arrived(folder) {
    const names = (await readdir(join(folder, 'got'))).filter((name) => !name.startsWith('.'))
    return Promise.all(names.map(async (name) => arrivedFromJson(JSON.parse(await readFile(join(folder, 'got', name), 'utf8')))))
  },
  down: {
    cause: (folder) => writeProgram(folder, 'exit 75'),
    heal: (folder) => writeProgram(folder, keepInput(folder)),
  },
  throttled: { lacks: 'a command has no words for it' },
  refused: {
    cause: (folder) => writeProgram(folder, 'exit 3'),
    heal: (folder) => writeProgram(folder, keepInput(folder)),
    refusal: 'rejected',
  },
  hanging: {
    cause: (folder) => writeProgram(folder, `touch ${folder}/reached; sleep 600`),
    heal: (folder) => writeProgram(folder, keepInput(folder)),
    reached: (folder) => appears(folder, 'reached'),
  },
  checkFails: (folder) => rm(join(folder, 'program')),
})

describe('a command', () => {
  let folder: string
  let sinks: Sink[]

  beforeEach(async () => {
    folder = await startFolder()
    sinks = []
  })
  afterEach(async () => {
    for (const sink of sinks) await sink.close()
    await rm(folder, { recursive: true, force: true })
  })

  const open = async (options: object, context: object = {}): Promise<Sink> => {
    const parsed = exec.options.parse(options)
    const sink = await exec.open(parsed, { ...testContext, env: { PATH: process.env['PATH'] }, ...context })
    sinks.push(sink)
    return sink
  }
  const shell = (script: string, env: object = {}, context: object = {}): Promise<Sink> =>
    open({ command: ['/bin/sh', '-c', script], env }, context)
  const outcomeOf = async (script: string): Promise<DeliveryOutcome> => (await shell(script)).deliver(sampleEvent(1), unhurried())
  const written = (): Promise<string> => readFile(join(folder, 'out'), 'utf8')

  it.each([
    ['0', { status: 'delivered' }],
    ['75', { status: 'retry', because: 'transient', code: 'exit_75' }],
    ['1', { status: 'rejected', code: 'exit_1' }],
    ['126', { status: 'rejected', code: 'exit_126' }],
    ['255', { status: 'rejected', code: 'exit_255' }],
  ])('that exits with %s is told so', async (code, outcome) => {
    expect(await outcomeOf(`exit ${code}`)).toMatchObject(outcome)
  })

  it('that is ended by a signal of somebody else has failed for good', async () => {
    expect(await outcomeOf('kill -9 $$')).toMatchObject({ status: 'rejected', code: 'sigkill', detail: expect.stringContaining('SIGKILL') })
  })

  it('gets the main fields as variables, the operator’s own ones, and nothing else of the forwarder', async () => {
    const token = join(folder, 'token')
    await writeFile(token, 'from-file\n')
    const env = { PATH: process.env['PATH'], HOME: '/home/somebody', AZURE_CLIENT_SECRET: 'hunter2', WEBHOOK_SECRET: 'hunter3' }
    const sink = await shell(`env > ${folder}/out`, { DRAIN: 'yes', TOKEN: { file: token } }, { env })
    const event = sampleEvent(1, {
      data: { ...sampleEvent(1).data, eventStatus: 'Scheduled', notBefore: '2026-03-01T12:15:00Z', resources: ['web_0', 'web_1'] },
    })
    expect(await sink.deliver(event, unhurried())).toEqual({ status: 'delivered' })
    const variables = new Map(
      (await written())
        .trim()
        .split('\n')
        .map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]),
    )
    for (const shellsOwn of ['PWD', 'OLDPWD', '_', 'SHLVL']) variables.delete(shellsOwn)
    expect(Object.fromEntries(variables)).toEqual({
      PATH: process.env['PATH'],
      HOME: '/home/somebody',
      FORESHOCK_ID: event.id,
      FORESHOCK_TYPE: 'foreshock.scheduledevent.scheduled.v1',
      FORESHOCK_EVENT_ID: 'C7061BAC-AFDC-4513-B24B-AA5F13A10001',
      FORESHOCK_EVENT_TYPE: 'Reboot',
      FORESHOCK_EVENT_STATUS: 'Scheduled',
      FORESHOCK_NOT_BEFORE: '2026-03-01T12:15:00Z',
      FORESHOCK_RESOURCES: 'web_0,web_1',
      DRAIN: 'yes',
      TOKEN: 'from-file',
    })
  })

  it('finds its variables set and empty where the event has no such field, and never with a NUL', async () => {
    const sink = await shell(
      `set -u; printf '%s|%s|%s' "$FORESHOCK_NOT_BEFORE" "$FORESHOCK_RESOURCES" "$FORESHOCK_EVENT_ID" > ${folder}/out`,
    )
    expect(await sink.deliver(sampleEvent(1, { data: { eventId: 'a\0b' } }), unhurried())).toEqual({ status: 'delivered' })
    expect(await written()).toBe('||a\uFFFDb')
  })

  it('gets its arguments as they are: no shell reads them, and the event is none of them', async () => {
    await writeProgram(folder, `printf '%s\\n' "$#" "$@" > ${folder}/out`)
    const sink = await open({ command: [join(folder, 'program'), '$(touch /tmp/never)', '; exit 1', '*', ''] })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    expect(await written()).toBe('4\n$(touch /tmp/never)\n; exit 1\n*\n\n')
  })

  it('may leave its input unread', async () => {
    const sink = await open({ command: ['true'] })
    const large = sampleEvent(1, { data: { description: 'x'.repeat(60 * 1024) } })
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => sink.deliver(large, unhurried())))
    expect(outcomes).toEqual(outcomes.map(() => ({ status: 'delivered' })))
  })

  it('that writes without end is not held up, and what is kept of it is bounded', async () => {
    const told: { output?: string }[] = []
    const log: SinkLog = { ...testContext.log, warn: (fields) => void told.push(fields) }
    const sink = await shell('head -c 20000000 /dev/zero | tr "\\0" x; exit 9', {}, { log })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'rejected', code: 'exit_9' })
    expect(told).toHaveLength(1)
    expect(told[0]?.output?.length).toBeGreaterThan(1000)
    expect(told[0]?.output?.length).toBeLessThan(17 * 1024)
  })

  it('may print its secrets: the log has them masked, the outcome has none', async () => {
    const told: object[] = []
    const log: SinkLog = { ...testContext.log, warn: (fields) => void told.push(fields) }
    const sink = await shell('echo "token is $TOKEN"; echo "$TOKEN" >&2; exit 2', { TOKEN: 'hunter2-and-more' }, { log })
    const outcome = await sink.deliver(sampleEvent(1), unhurried())
    expect(JSON.stringify(told)).toContain('token is ***')
    expect(JSON.stringify([told, outcome])).not.toContain('hunter2')
  })

  it('may leave something running behind that keeps its output open', async () => {
    const sink = await shell(`sleep 600 & echo $! > ${folder}/out`)
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    process.kill(Number(await written()), 'SIGKILL')
  })

  it('that heeds neither the time limit nor SIGTERM is killed with everything it started, and runs again later', async () => {
    const script = `trap '' TERM; sh -c 'trap "" TERM; echo $$ > ${folder}/child; touch ${folder}/reached; while :; do sleep 1; done' & wait; while :; do sleep 1; done`
    const sink = await shell(script)
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    await appears(folder, 'reached')
    const child = Number(await readFile(join(folder, 'child'), 'utf8'))
    const started = performance.now()
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    expect(performance.now() - started).toBeLessThan(5_000)
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), { timeout: 5_000 })
  })

  it('gets SIGTERM first, so that it can tidy up', async () => {
    const sink = await shell(`trap 'touch ${folder}/tidied; exit 0' TERM; touch ${folder}/reached; while :; do sleep 0.05; done`)
    const time = new AbortController()
    const delivering = sink.deliver(sampleEvent(1), time)
    await appears(folder, 'reached')
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ code: 'timeout' })
    expect(existsSync(join(folder, 'tidied'))).toBe(true)
  })

  it('is stopped when the sink is closed', async () => {
    const sink = await shell(`echo $$ > ${folder}/child; touch ${folder}/reached; exec sleep 600`)
    const delivering = sink.deliver(sampleEvent(1), unhurried())
    await appears(folder, 'reached')
    const child = Number(await readFile(join(folder, 'child'), 'utf8'))
    await sink.close()
    expect(isRunning(child)).toBe(false)
    expect(await delivering).toMatchObject({ status: 'retry', because: 'transient', code: 'closed' })
    expect(await sink.deliver(sampleEvent(2), unhurried())).toMatchObject({ status: 'retry', code: 'closed' })
  })

  it.each([
    ['is missing', '/nowhere/drain', 'enoent'],
    ['is not in PATH', 'no-such-program-of-ours', 'enoent'],
    ['may not be executed', './plain', 'eacces'],
  ])('that %s keeps its events, and turns the sink red', async (_, file, code) => {
    await writeFile(join(folder, 'plain'), '#!/bin/sh\n', { mode: 0o644 })
    const sink = await open({ command: [file.replace(/^\./, folder)] })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code })
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, cure: expect.stringContaining('command') })
  })

  it('is found in PATH by its name alone', async () => {
    const sink = await open({ command: ['true'] })
    expect(await sink.check(unhurried())).toMatchObject({ ok: true, detail: expect.stringMatching(/^\/.*\/true can be executed$/) })
  })

  it('keeps its events while a file with a variable of it cannot be read', async () => {
    const sink = await open({ command: ['true'], env: { TOKEN: { file: join(folder, 'missing') } } })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code: 'config_invalid' })
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, detail: expect.stringContaining('missing') })
  })
})

describe('the options of a command', () => {
  it.each([
    ['no command', {}],
    ['an empty command', { command: [] }],
    ['a command line instead of a list', { command: 'drain --now' }],
    ['a NUL', { command: ['drain', 'a\0b'] }],
    ['a variable that is no name', { command: ['drain'], env: { 'A-B': 'x' } }],
  ])('refuse %s', (_, options) => {
    expect(exec.options.safeParse(options).success).toBe(false)
  })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
