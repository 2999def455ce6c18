import { expect, it } from 'vitest'
import { z } from 'zod'
import { startHttpReceiver, type HttpReceiver } from '../support/http-receiver.ts'
import {
  afterwards,
  documentOf,
  entryOf,
  eventsIn,
  eventually,
  openStage,
  readEvent,
  run,
  told,
  type Published,
  type Stage,
} from '../support/program.ts'

const scheduled = entryOf()
const putOff = entryOf({ NotBefore: 'Tue, 12 Apr 2033 22:26:58 GMT' })
const started = entryOf({ EventStatus: 'Started', NotBefore: '' })

interface TwoSinks extends Stage {
  readonly hook: HttpReceiver
  readonly config: string
}

/** A webhook and a file, for scheduled events only. */
async function openTwoSinks(): Promise<TwoSinks> {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  const stage = await openStage()
  const filter = { types: ['scheduledevent.*'] }
  const config = stage.configure({
    sinks: [
      { name: 'hook', type: 'webhook', url: `${hook.origin}/in`, filter },
      { name: 'log', type: 'file', path: stage.file, filter },
    ],
  })
  return { ...stage, hook, config }
}

const taken = (hook: HttpReceiver): Published[] => hook.requests.filter(({ accepted }) => accepted).map(({ body }) => readEvent(body))

const listing = z.object({
  sinks: z.array(z.object({ name: z.string(), pending: z.int(), dead: z.int(), haltedReason: z.string().nullable() })),
  deliveries: z.array(z.object({ sink: z.string(), state: z.string(), type: z.string(), lastCode: z.string().nullable() })),
})

async function outbox(config: string): Promise<z.output<typeof listing>> {
  const { status, stdout, stderr } = await run(['outbox', 'list', '--json', '--config', config])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return listing.parse(JSON.parse(stdout))
}

it('keeps what a webhook that is down misses, delays no other sink, and delivers in order once it is up', async () => {
  const { imds, file, hook, config, forward } = await openTwoSinks()
  await hook.stop()
  forward()
  const steps = [documentOf(2, scheduled), documentOf(3, putOff), documentOf(4, started), documentOf(5)]
  const story = ['scheduled', 'scheduled', 'started', 'completed']
  for (const [index, document] of steps.entries()) {
    imds.setDocument(document)
    await eventually(() => expect(told(eventsIn(file))).toEqual(story.slice(0, index + 1)))
  }
  const { sinks, deliveries } = await outbox(config)
  expect(sinks).toMatchObject([{ name: 'hook', pending: 4, dead: 0, haltedReason: null }])
  expect(deliveries.map(({ sink, state }) => `${sink} ${state}`)).toEqual(['hook pending', 'hook pending', 'hook pending', 'hook pending'])
  expect(deliveries[0]?.lastCode).toBe('network')

  await hook.restart()
  await eventually(() => expect(taken(hook)).toEqual(eventsIn(file)), 30_000)
  expect(told(taken(hook))).toEqual(story)
  expect(await eventually(async () => (await outbox(config)).sinks)).toEqual([])
})

it('does not come back before Retry-After is over, and then brings everything', async () => {
  const { imds, hook, forward } = await openTwoSinks()
  hook.behave({ does: 'answer', status: 503, headers: { 'Retry-After': '2' } })
  forward()
  const refused = hook.nextRequest()
  imds.setDocument(documentOf(2, scheduled))
  await refused
  const begun = performance.now()
  hook.behave({ does: 'answer', status: 204 })
  const next = hook.nextRequest()
  imds.setDocument(documentOf(3, started))
  await next
  // The clock of the wait starts when the answer arrives, and timers may fire a millisecond early.
  expect(performance.now() - begun).toBeGreaterThan(1_950)
  await eventually(() => expect(told(taken(hook))).toEqual(['scheduled', 'started']))
})

it('halts a webhook that answers 410, also after a restart, until an operator replays it beside the running forwarder', async () => {
  const { imds, file, hook, config, forward } = await openTwoSinks()
  hook.behave({ does: 'answer', status: 410 })
  const first = forward()
  imds.setDocument(documentOf(2, scheduled))
  await eventually(() => expect(first.log().map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^the sink hook is halted/)))
  first.send('SIGTERM')
  expect((await first.ended).status).toBe(0)
  hook.behave({ does: 'answer', status: 204 })

  const second = forward()
  imds.setDocument(documentOf(3, started))
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'started']))
  expect((await outbox(config)).sinks).toMatchObject([{ name: 'hook', pending: 2, haltedReason: expect.stringMatching(/410/) }])
  expect(second.log().map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^the sink hook is halted/))
  expect(hook.requests).toHaveLength(1)

  expect(await run(['outbox', 'replay', '--sink', 'hook', '--config', config])).toEqual({
    status: 0,
    stdout: '0 dead letters wait again; resumed: hook\n',
    stderr: '',
  })
  await eventually(() => expect(told(taken(hook))).toEqual(['scheduled', 'started']))
  expect(second.log().map(({ msg }) => msg)).toContain('the sink hook is resumed')
})

it('makes a dead letter of what a webhook refuses for good, and delivers it when it is replayed', async () => {
  const { imds, hook, config, forward } = await openTwoSinks()
  hook.behave({ does: 'answer', status: 400 })
  const forwarder = forward()
  imds.setDocument(documentOf(2, scheduled))
  await eventually(() => expect(forwarder.log()).toContainEqual(expect.objectContaining({ level: 'warn', sink: 'hook', code: 'http_400' })))
  expect((await outbox(config)).sinks).toMatchObject([{ name: 'hook', pending: 0, dead: 1 }])
  hook.behave({ does: 'answer', status: 204 })
  expect((await run(['outbox', 'replay', '--config', config])).stdout).toBe('1 dead letters wait again\n')
  await eventually(() => expect(told(taken(hook))).toEqual(['scheduled']))
})
