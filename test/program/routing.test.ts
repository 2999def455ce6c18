import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { afterwards, documentOf, entryOf, eventsIn, eventually, linesIn, openStage, run } from '../support/program.ts'

const idOf = (number: number): string => `00000000-0000-0000-0000-00000000000${number}`
const about = (number: number, overrides: Record<string, unknown> = {}): Record<string, unknown> =>
  entryOf({ EventId: idOf(number), ...overrides })

/** Which of the events of the test a file got, by their last digit, whatever their order. */
const numbersIn = (path: string): string[] =>
  eventsIn(path)
    .flatMap(({ type, data }) => (type.includes('.scheduledevent.') ? [String(z.string().parse(data['eventId']).at(-1))] : []))
    .toSorted()

it('sends each event to the sinks whose filter it passes: several of a type, and one for this VM alone', async () => {
  const { imds, folder, configure, forward } = await openStage()
  const file = (name: string): string => join(folder, `${name}.jsonl`)
  const filters = {
    all: undefined,
    scheduled: { types: ['scheduledevent.*'] },
    mine: { types: ['scheduledevent.*'], affectsThisVm: true },
    others: { affectsThisVm: false },
    users: { eventSources: ['User'] },
    freezes: { eventTypes: ['freeze'] },
    forwarder: { types: ['forwarder.*'] },
    nothing: { eventTypes: ['Freeze'], eventSources: ['User'], affectsThisVm: true },
  }
  configure({
    sinks: Object.entries(filters).map(([name, filter]) => ({
      name,
      type: 'file',
      path: file(name),
      ...(filter === undefined ? {} : { filter }),
    })),
  })
  imds.setDocument(
    documentOf(
      2,
      about(1),
      about(2, { Resources: ['web_1', 'WEB_0'], EventType: 'Freeze' }),
      about(3, { Resources: ['web_1'], EventSource: 'User' }),
      about(4, { Resources: ['web_1'], EventType: 'Freeze' }),
    ),
  )
  const forwarder = forward()
  await eventually(() => expect(numbersIn(file('all'))).toEqual(['1', '2', '3', '4']))
  forwarder.send('SIGTERM')
  expect(await forwarder.ended).toEqual({ status: 0, signal: null })

  const got = Object.fromEntries(Object.keys(filters).map((name) => [name, numbersIn(file(name))]))
  expect(got).toEqual({
    all: ['1', '2', '3', '4'],
    scheduled: ['1', '2', '3', '4'],
    mine: ['1', '2'],
    others: ['3', '4'],
    users: ['3'],
    freezes: ['2', '4'],
    forwarder: [],
    nothing: [],
  })
  expect(eventsIn(file('forwarder')).map(({ type }) => type)).toEqual(['foreshock.forwarder.started.v1', 'foreshock.forwarder.stopping.v1'])
})

it('writes an event in the shape that each sink was asked for, knowing the machine that reports', async () => {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  const { imds, folder, configure, forward } = await openStage()
  const file = (name: string): string => join(folder, `${name}.jsonl`)
  const filter = { types: ['scheduledevent.*'] }
  const formats = ['cloudevents', 'azure-resource-log', 'ecs']
  const script = `cat > ${folder}/drained.json; echo "$FORESHOCK_EVENT_TYPE $FORESHOCK_RESOURCES" > ${folder}/drained`
  configure({
    sinks: [
      ...formats.map((format) => ({ name: format, type: 'file', path: file(format), format, filter })),
      { name: 'splunk', type: 'webhook', url: `${hook.origin}/splunk`, format: 'splunk-hec', filter },
      { name: 'slack', type: 'webhook', url: `${hook.origin}/slack`, template: 'slack', filter },
      { name: 'drain', type: 'exec', command: ['/bin/sh', '-c', script], filter },
    ],
  })
  imds.setDocument(documentOf(2, about(1)))
  expect((await forward({ args: ['--once'] }).ended).status).toBe(0)

  const [event] = eventsIn(file('cloudevents'))
  const first = (name: string): unknown => JSON.parse(linesIn(file(name))[0] ?? '')
  expect(first('azure-resource-log')).toMatchObject({ records: [{ properties: { eventId: idOf(1), cloudEventId: event?.id } }] })
  expect(first('ecs')).toMatchObject({ 'event.id': event?.id, 'host.name': 'web_0', 'cloud.instance.id': expect.any(String) })
  const posted = (path: string): unknown => JSON.parse(hook.requests.find((request) => request.path === path)?.body ?? '')
  expect(posted('/splunk')).toMatchObject({ host: 'web_0', sourcetype: 'foreshock:cloudevent', event })
  expect(posted('/slack')).toMatchObject({ text: 'Reboot scheduled: web_0' })
  expect(JSON.parse(readFileSync(join(folder, 'drained.json'), 'utf8'))).toEqual(event)
  expect(readFileSync(join(folder, 'drained'), 'utf8')).toBe('Reboot web_0\n')
})

it('tells a format that a sink cannot write as a mistake, with what it can', async () => {
  const { folder } = await openStage()
  const config = join(folder, 'wrong.json')
  writeFileSync(config, JSON.stringify({ sinks: [{ name: 'drain', type: 'exec', command: ['true'], format: 'ecs' }] }))
  const { status, stderr } = await run(['check', '--config', config])
  expect(status).toBe(2)
  expect(stderr).toMatch(/sinks\[0\]\.format: .*cloudevents.*got "ecs"/)
})
