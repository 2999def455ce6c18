import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { startHttpReceiver } from '../support/http-receiver.ts'
import {
  afterwards,
  documentOf,
  entryOf,
  eventsIn,
  eventually,
  openStage,
  readEvent,
  run,
  start,
  told,
  type Published,
  type Stage,
} from '../support/program.ts'

const scheduledId = /^c7061bac-afdc-4513-b24b-aa5f13a16123:scheduled:[0-9a-f]{16}$/

const idsIn = (path: string): string[] => eventsIn(path).flatMap(({ type, id }) => (type.includes('.scheduledevent.') ? [id] : []))

/** Runs a command that is to succeed without a word on stderr. Gives its stdout. */
async function results(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await run(args)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
}

const json = async (...args: string[]): Promise<unknown> => JSON.parse(await results(...args, '--json'))

it('check explains the configuration, and gives it whole with --json', async () => {
  const { imds, configure, file, state } = await openStage()
  const config = configure({
    imds: { endpoint: imds.url, pollIntervalMs: 200 },
    scope: 'vm',
    sinks: [{ name: 'log', type: 'file', path: file, filter: { eventTypes: ['Reboot'] } }],
  })
  const text = await results('check', '--config', config)
  for (const part of [
    config,
    `${imds.url}, api-version 2020-07-01, every 200 ms`,
    'vm: each VM tells',
    state,
    'eventTypes Reboot',
    'warning: imds.pollIntervalMs is 200',
  ])
    expect(text).toContain(part)
  expect(text.endsWith('The configuration is valid.\n')).toBe(true)
  expect(await json('check', '--config', config)).toMatchObject({
    file: config,
    imds: { endpoint: imds.url, pollIntervalMs: 200, apiVersion: '2020-07-01' },
    scope: 'vm',
    sinks: [{ name: 'log', type: 'file', filter: { eventTypes: ['Reboot'] }, maxAgeSeconds: 604_800 }],
    warnings: [expect.stringMatching(/5 requests per second/)],
  })
})

it('the environment names the configuration where no option does', async () => {
  const { configure } = await openStage()
  const config = configure()
  const { stdout } = await run(['check', '--json'], { env: { FORESHOCK_CONFIG: config } })
  expect(JSON.parse(stdout)).toMatchObject({ file: config })
})

it('events shows what is scheduled with countdowns, as a table and as JSON', async () => {
  const { imds, configure } = await openStage()
  const config = configure()
  expect(await results('events', '--config', config)).toBe('web_0, incarnation 1: nothing is scheduled\n')
  const soon = new Date(Date.now() + 10 * 60_000).toUTCString()
  const others = Array.from({ length: 5 }, (_, index) => `web_${index + 1}`)
  imds.setDocument(
    documentOf(
      7,
      entryOf({ NotBefore: soon, DurationInSeconds: 9 }),
      entryOf({ EventId: 'other', EventStatus: 'Started', NotBefore: '', Resources: others }),
      'rubbish',
    ),
  )
  const [head, headings, first, second, odd] = (await results('events', '--config', config)).split('\n')
  expect(head).toBe('web_0, incarnation 7')
  expect(headings).toMatch(/^TYPE +STATUS +NOT BEFORE +LASTS +BY +RESOURCES +APPROVAL +EVENT ID +DESCRIPTION$/)
  expect(first).toMatch(/^Reboot +Scheduled +in (9|10) min.* \(\d{4}-\S+Z\) +9 s +Platform +web_0 \(this VM\) +C7061BAC-\S+ +Host server/)
  expect(second).toMatch(/^Reboot +Started +now +unknown +Platform +web_1, web_2, web_3 and 2 more +other/)
  expect(odd).toMatch(/^an entry that cannot be read: expected an event object/)
  expect(await json('events', '--config', config)).toMatchObject({
    incarnation: 7,
    vmName: 'web_0',
    events: [
      { eventType: 'Reboot', affectsThisVm: true },
      { eventId: 'other', affectsThisVm: false },
    ],
  })
})

it('events --watch shows each look until it is interrupted, and outlives a failure of IMDS', async () => {
  const { imds, configure } = await openStage()
  const watch = start(['events', '--watch', '--json', '--config', configure()])
  await eventually(() => expect(watch.stdout.length).toBeGreaterThan(1))
  imds.setFault({ kind: 'empty', on: ['events'], times: 1 })
  imds.setDocument(documentOf(8, entryOf()))
  await eventually(() => expect(watch.stdout.at(-1)).toMatch(/"incarnation":8/))
  watch.send('SIGINT')
  expect(await watch.ended).toEqual({ status: 0, signal: null })
  expect(watch.stderr).toEqual([expect.stringMatching(/^IMDS gave no document: .*empty body/)])
})

it('events and status exit with 69 where nothing answers; record captures just that', async () => {
  const { folder, imds, configure } = await openStage()
  const config = configure({ admin: { listen: new URL(imds.url).host } })
  await imds.close()
  for (const command of ['events', 'status']) {
    const { status, stdout, stderr } = await run([command, '--config', config])
    expect({ command, status, stdout }).toEqual({ command, status: 69, stdout: '' })
    expect(stderr).toMatch(/^foreshock: .*\n$/)
  }
  const out = join(folder, 'recorded.yaml')
  const { status } = await run(['record', '--out', out, '--seconds', '1', '--interval', '100', '--config', config])
  expect(status).toBe(0)
  expect(parse(readFileSync(out, 'utf8'))).toMatchObject({ documents: [{ noAnswer: 'reset' }] })
})

/** A stage on which a webhook has refused one event for good and the sink `down` has never had any. */
async function openDeadLetter(): Promise<
  Stage & { readonly config: string; readonly id: string; readonly bodies: () => Published[]; readonly accept: () => void }
> {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  hook.behave({ does: 'answer', status: 400 })
  const stage = await openStage()
  const filter = { types: ['scheduledevent.*'] }
  const config = stage.configure({
    sinks: [
      { name: 'hook', type: 'webhook', url: hook.origin, filter },
      { name: 'down', type: 'webhook', url: 'http://127.0.0.1:1', filter },
      { name: 'log', type: 'file', path: stage.file, filter },
    ],
  })
  stage.imds.setDocument(documentOf(2, entryOf()))
  expect((await stage.forward({ args: ['--once'] }).ended).status).toBe(75)
  const id = eventsIn(stage.file)[0]?.id ?? ''
  expect(id).toMatch(scheduledId)
  return {
    ...stage,
    config,
    id,
    bodies: () => hook.requests.filter(({ accepted }) => accepted).map(({ body }) => readEvent(body)),
    accept: () => hook.behave({ does: 'answer', status: 204 }),
  }
}

it('outbox list tells what waits and what died, per sink, and filters', async () => {
  const { config, id } = await openDeadLetter()
  const text = await results('outbox', 'list', '--config', config)
  expect(text).toMatch(/^SINK +PENDING +OLDEST +DEAD +HALTED BECAUSE\n/)
  expect(text).toMatch(new RegExp(`^hook +dead +${id} .*http_400: 127.0.0.1:\\d+ answered 400`, 'm'))
  expect(text).toMatch(new RegExp(`^down +pending +${id} .*network: `, 'm'))
  expect(await json('outbox', 'list', '--config', config)).toMatchObject({
    sinks: [
      { name: 'down', pending: 1, dead: 0 },
      { name: 'hook', pending: 0, dead: 1 },
    ],
    deliveries: [
      { sink: 'down', state: 'pending', id },
      { sink: 'hook', state: 'dead', id, lastCode: 'http_400' },
    ],
  })
  expect(await json('outbox', 'list', '--state', 'dead', '--config', config)).toMatchObject({ deliveries: [{ sink: 'hook' }] })
  expect(await json('outbox', 'list', '--sink', 'down', '--config', config)).toMatchObject({
    sinks: [{ name: 'down' }],
    deliveries: [{ sink: 'down' }],
  })
  expect(await json('outbox', 'list', '--state', 'delivered', '--config', config)).toMatchObject({
    deliveries: [{ sink: 'log', state: 'delivered' }],
  })
})

it('outbox show gives one event whole, and what became of it at each sink', async () => {
  const { config, id, file } = await openDeadLetter()
  expect(await json('outbox', 'show', id, '--config', config)).toMatchObject([
    {
      id,
      event: eventsIn(file)[0],
      deliveries: [
        { sink: 'down', state: 'pending' },
        { sink: 'hook', state: 'dead', lastCode: 'http_400' },
        { sink: 'log', state: 'delivered' },
      ],
    },
  ])
  const text = await results('outbox', 'show', id, '--config', config)
  expect(text).toContain(`"id": "${id}"`)
  expect(text).toMatch(/^hook +dead +1 /m)
})

it('outbox replay makes a dead letter wait again, and the next run delivers it', async () => {
  const { config, id, bodies, accept, forward } = await openDeadLetter()
  expect(await json('outbox', 'replay', id, '--config', config)).toEqual({ replayed: 1, resumed: [] })
  expect(await json('outbox', 'list', '--sink', 'hook', '--config', config)).toMatchObject({ sinks: [{ pending: 1, dead: 0 }] })
  accept()
  await forward({ args: ['--once'] }).ended
  expect(bodies().map((event) => event.id)).toEqual([id])
})

it('outbox drop removes what it is told to, and nothing when it is told nothing', async () => {
  const { config, id } = await openDeadLetter()
  const refused = await run(['outbox', 'drop', '--config', config])
  expect(refused).toMatchObject({ status: 2, stdout: '', stderr: expect.stringMatching(/expected an id, --sink, --state or --all/) })
  expect(await json('outbox', 'drop', id, '--sink', 'hook', '--config', config)).toEqual({ dropped: 1 })
  expect(await results('outbox', 'drop', '--all', '--config', config)).toBe('1 deliveries dropped\n')
  expect(await json('outbox', 'list', '--config', config)).toEqual({ sinks: [], deliveries: [] })
  expect(await results('outbox', 'list', '--config', config)).toBe('nothing waits and nothing died\n')
})

it.each(['list', 'replay', 'drop'])('outbox %s says so, and exits with 2, when no sink has that name', async (command) => {
  const { config } = await openDeadLetter()
  expect(await run(['outbox', command, '--sink', 'hok', '--config', config])).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^foreshock: expected --sink to be one of down, hook, log, got hok/),
  })
})

it('outbox commands say so, and exit with 2, when there is no such event', async () => {
  const { config } = await openDeadLetter()
  for (const command of ['show', 'replay', 'drop']) {
    const { status, stdout, stderr } = await run(['outbox', command, 'nobody', '--config', config])
    expect({ command, status, stdout }).toEqual({ command, status: 2, stdout: '' })
    expect(stderr).toMatch(/^foreshock: expected the id of .*, got nobody: see foreshock outbox list/)
  }
})

it('outbox commands exit with 1 where there is no state file, and make none', async () => {
  const { configure, folder } = await openStage()
  const { status, stdout, stderr } = await run(['outbox', 'list', '--config', configure()])
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/^foreshock: expected a state file, got nothing at .*run the forwarder first\n$/)
  expect(() => readFileSync(join(folder, 'state.db'))).toThrow(/ENOENT/)
})

it('schema prints JSON Schemas that hold for a configuration and for what is published', async () => {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictTuples: false })
  formats.default(ajv)
  const ofConfig = z.record(z.string(), z.unknown()).parse(JSON.parse(await results('schema', 'config')))
  expect(JSON.parse(await results('schema'))).toEqual(ofConfig)
  const isConfig = ajv.compile(ofConfig)
  for (const name of ['minimal', 'simulator', 'webhook']) {
    expect({ name, valid: isConfig(parse(readFileSync(new URL(`../../config/${name}.yaml`, import.meta.url), 'utf8'))) }).toEqual({
      name,
      valid: true,
    })
  }
  expect(isConfig({ imds: { pollIntervalMs: 5 } })).toBe(false)

  const schemas = z.record(z.string(), z.looseObject({ $id: z.string() })).parse(JSON.parse(await results('schema', 'event')))
  expect(Object.keys(schemas).toSorted()).toEqual(['approval', 'forwarder', 'scheduledevent'])
  for (const schema of Object.values(schemas)) ajv.addSchema(schema)
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, entryOf()))
  const forwarder = forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  imds.setDocument(documentOf(3))
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'cancelled']))
  forwarder.send('SIGTERM')
  await forwarder.ended
  expect(eventsIn(file)).toHaveLength(4)
  for (const { type, dataschema, data } of eventsIn(file))
    expect({ type, valid: ajv.validate(String(dataschema), data), errors: ajv.errorsText() }).toEqual({
      type,
      valid: true,
      errors: 'No errors',
    })
})

it('record captures an endpoint as a scenario, and simulate imds plays it: the same events come out', async () => {
  const { imds, folder, file, configure, forward } = await openStage()
  const out = join(folder, 'recorded.yaml')
  const recorder = start(['record', '--out', out, '--interval', '100', '--config', configure()])
  const frames = (): number => recorder.log().filter(({ msg }) => msg === 'recorded').length
  const documents = [documentOf(2, entryOf()), documentOf(3, entryOf({ EventStatus: 'Started', NotBefore: '' })), documentOf(4)]
  forward()
  for (const [index, document] of documents.entries()) {
    imds.setDocument(document)
    await eventually(() => expect(told(eventsIn(file))).toHaveLength(index + 1))
    await eventually(() => expect(frames()).toBeGreaterThan(index))
  }
  recorder.send('SIGINT')
  expect((await recorder.ended).status).toBe(0)
  expect(recorder.stdout).toEqual([])
  expect(recorder.stderr.at(-1)).toMatch(/recorded\.yaml: \d frames from \d+ polls; play it with: foreshock simulate imds --scenario/)
  const again = await run(['record', '--out', out, '--config', configure()])
  expect(again).toMatchObject({ status: 2, stderr: expect.stringMatching(/expected a new file that can be written/) })

  // Played slowly: the phases of the recording are as short as the test was quick.
  const simulator = start(['simulate', 'imds', '--port', '0', '--json', '--scenario', out, '--speed', '0.2'])
  const announced = z.object({ vms: z.array(z.object({ vm: z.string(), url: z.string() })) })
  const { vms } = await eventually(() => announced.parse(JSON.parse(simulator.stdout[0] ?? '')))
  const [machine] = vms
  expect(machine?.vm).toBe('web_0')
  const copy = join(folder, 'copy.jsonl')
  const config = join(folder, 'copy.json')
  writeFileSync(
    config,
    JSON.stringify({
      imds: { endpoint: machine?.url, pollIntervalMs: 100 },
      state: { path: join(folder, 'copy.db') },
      admin: { listen: false },
      sinks: [{ name: 'log', type: 'file', path: copy }],
    }),
  )
  start(['run', '--config', config])
  await eventually(() => expect(told(eventsIn(copy))).toEqual(['scheduled', 'started', 'completed']))
  expect(idsIn(copy)).toEqual(idsIn(file))
})

it('simulate imds --list names the ready scenarios, as a table and as JSON', async () => {
  const listed = z.array(z.object({ name: z.string(), description: z.string() })).parse(await json('simulate', 'imds', '--list'))
  const text = await results('simulate', 'imds', '--list')
  for (const { name, description } of listed) expect(text).toMatch(new RegExp(`^${name} +${description.slice(0, 20)}`, 'm'))
  expect(listed.map(({ name }) => name)).toContain('live-migration')
})

it('run writes nothing but events to stdout, and nothing but log lines to stderr', async () => {
  const { imds, configure, forward } = await openStage()
  configure({ sinks: [{ name: 'stdout', type: 'stdout' }], log: { level: 'trace' } })
  imds.setDocument(documentOf(2, entryOf()))
  const forwarder = forward()
  await eventually(() => expect(told(forwarder.stdout.map(readEvent))).toEqual(['scheduled']))
  forwarder.send('SIGTERM')
  await forwarder.ended
  expect(forwarder.stdout.map((line) => readEvent(line).type.split('.').at(-2))).toEqual(['started', 'scheduled', 'stopping'])
  expect(forwarder.log().map(({ msg }) => msg)).toContain('foreshock runs')
})
