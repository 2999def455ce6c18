import { expect, it } from 'vitest'
import { startHttpReceiver, type HttpReceiver } from '../support/http-receiver.ts'
import {
  afterwards,
  documentOf,
  entryOf,
  eventsIn,
  eventually,
  openStage,
  readEvent,
  told,
  toldOfForwarder,
  type Program,
  type Stage,
} from '../support/program.ts'

async function openHangingHook(shutdownSeconds: number): Promise<Stage & { readonly hook: HttpReceiver }> {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  hook.behave({ does: 'hang' })
  const stage = await openStage()
  stage.configure({
    shutdownSeconds,
    sinks: [
      { name: 'hook', type: 'webhook', url: hook.origin },
      { name: 'log', type: 'file', path: stage.file },
    ],
  })
  return { ...stage, hook }
}

async function timed(program: Program): Promise<{ status: number | null; seconds: number }> {
  const begun = performance.now()
  const { status } = await program.ended
  return { status, seconds: (performance.now() - begun) / 1000 }
}

it.for(['SIGTERM', 'SIGINT'] as const)('%s: a stopping event is delivered last, and it exits with 0', async (signal) => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, entryOf()))
  const forwarder = forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  forwarder.send(signal)
  expect(await forwarder.ended).toEqual({ status: 0, signal: null })
  expect(toldOfForwarder(eventsIn(file))).toEqual(['started', 'stopping'])
  expect(eventsIn(file).at(-1)).toMatchObject({ type: 'foreshock.forwarder.stopping.v1', data: { liveEventsTotal: 1 } })
})

it('waits no longer than shutdownSeconds for a sink that hangs; what was not delivered is delivered after the next start', async () => {
  const { hook, file, forward } = await openHangingHook(1)
  const forwarder = forward()
  await hook.nextRequest()
  forwarder.send('SIGTERM')
  const { status, seconds } = await timed(forwarder)
  expect(status).toBe(0)
  expect(seconds).toBeGreaterThan(0.9)
  expect(seconds).toBeLessThan(6)
  expect(toldOfForwarder(eventsIn(file))).toEqual(['started', 'stopping'])
  hook.behave({ does: 'answer', status: 204 })
  forward()
  await eventually(() => expect(hook.arrived()).toHaveLength(3))
  const types = hook.requests.filter(({ accepted }) => accepted).map(({ body }) => readEvent(body))
  expect(toldOfForwarder(types)).toEqual(['started', 'stopping', 'started'])
})

it('ends at once at a second signal', async () => {
  const { hook, forward } = await openHangingHook(60)
  const forwarder = forward()
  await hook.nextRequest()
  forwarder.send('SIGTERM')
  await eventually(() => expect(forwarder.log().map(({ msg }) => msg)).toContain('stopping'))
  forwarder.send('SIGTERM')
  const { status, seconds } = await timed(forwarder)
  expect(status).toBe(143)
  expect(seconds).toBeLessThan(5)
  expect(forwarder.log().at(-1)?.msg).toMatch(/^second signal: ending at once/)
})

it('loses nothing when the reader of its stdout goes away: it runs on, and the next start prints what waited', async () => {
  const { imds, configure, forward } = await openStage()
  configure({ shutdownSeconds: 1, sinks: [{ name: 'stdout', type: 'stdout', filter: { types: ['scheduledevent.*'] } }] })
  imds.setDocument(documentOf(2, entryOf()))
  const first = forward()
  await eventually(() => expect(told(first.stdout.map(readEvent))).toEqual(['scheduled']))
  first.closeStdout()
  imds.setDocument(documentOf(3, entryOf({ EventStatus: 'Started', NotBefore: '' })))
  await eventually(() => expect(first.log()).toContainEqual(expect.objectContaining({ sink: 'stdout', code: 'stdout_broken' })))
  imds.setDocument(documentOf(4))
  await eventually(() => expect(first.log().map(({ msg }) => msg)).toContain('Reboot completed'))
  first.send('SIGTERM')
  expect((await first.ended).status).toBe(0)

  const second = forward()
  await eventually(() => expect(told(second.stdout.map(readEvent))).toEqual(['started', 'completed']))
})

it('runs on when the reader of its logs goes away', async () => {
  const { imds, file, forward } = await openStage()
  const forwarder = forward()
  await eventually(() => expect(toldOfForwarder(eventsIn(file))).toEqual(['started']))
  forwarder.closeStderr()
  imds.setDocument(documentOf(2, entryOf()))
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  imds.setDocument(documentOf(3))
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'cancelled']))
  forwarder.send('SIGTERM')
  expect(await forwarder.ended).toEqual({ status: 0, signal: null })
})

it('a command that is stopped while it waits for IMDS says that it may be tried again', async () => {
  const { imds, forward } = await openStage()
  imds.setFault({ kind: 'hang' })
  const once = forward({ args: ['--once'] })
  await eventually(() => expect(imds.requests).not.toEqual([]))
  once.send('SIGTERM')
  expect(await once.ended).toEqual({ status: 75, signal: null })
  expect(once.log().map(({ msg }) => msg)).toEqual(['stopping', expect.stringMatching(/^stopped before/)])
})
