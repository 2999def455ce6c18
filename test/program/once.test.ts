import { createServer } from 'node:http'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { urlOf } from '../../src/simulator/imds/listen.ts'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { afterwards, documentOf, entryOf, eventsIn, eventually, openStage, told, type Program } from '../support/program.ts'

/** An address at which nothing listens. */
async function nowhere(): Promise<string> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = urlOf(server)
  server.close()
  await once(server, 'close')
  return url
}

const errors = (program: Program): string[] => program.log().flatMap(({ level, msg }) => (level === 'error' ? [msg] : []))

it('polls once, delivers what is due and exits with 0; a later run goes on from there', async () => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, entryOf({ EventStatus: 'Started', NotBefore: '' })))
  for (let times = 0; times < 2; times += 1) {
    expect(await forward({ args: ['--once'] }).ended).toEqual({ status: 0, signal: null })
    expect(told(eventsIn(file))).toEqual(['started'])
  }
  imds.setDocument(documentOf(3))
  forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['started', 'completed']))
})

it('exits with 69 where IMDS is out of reach, and says so', async () => {
  const { file, configure, forward } = await openStage()
  configure({ imds: { endpoint: await nowhere() } })
  const program = forward({ args: ['--once'] })
  expect((await program.ended).status).toBe(69)
  expect(errors(program)).toEqual([expect.stringMatching(/^IMDS gave no document: .*ECONNREFUSED/)])
  expect(eventsIn(file)).toEqual([])
})

it('exits with 75 while a sink is down, and the next one delivers what waits', async () => {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  await hook.stop()
  const { imds, configure, forward } = await openStage()
  configure({ sinks: [{ name: 'hook', type: 'webhook', url: hook.origin }] })
  imds.setDocument(documentOf(2, entryOf()))
  const program = forward({ args: ['--once'] })
  expect((await program.ended).status).toBe(75)
  expect(program.log()).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: expect.stringMatching(/not everything could be delivered/) }),
  )
  await hook.restart()
  await eventually(async () => expect((await forward({ args: ['--once'] }).ended).status).toBe(0))
  expect(hook.arrived().map(({ attributes }) => attributes['type'])).toEqual(['foreshock.scheduledevent.scheduled.v1'])
})

it('exits with 75 and one line where another forwarder has the state file', async () => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, entryOf()))
  forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  for (const args of [[], ['--once']]) {
    const second = forward({ args })
    expect((await second.ended).status).toBe(75)
    expect(second.stderr).toEqual([expect.stringMatching(/^foreshock: expected to be the only forwarder with the state file .*state\.db/)])
  }
})
