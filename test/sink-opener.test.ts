import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { delivered, type Sink, type SinkDefinition } from '../sinks/contract.ts'
import { ForeshockError } from '../sinks/error.ts'
import type { ConfiguredSink } from '../src/config/sinks.ts'
import { selfOpening } from '../src/sink-opener.ts'
import { testContext } from './support/sink-conformance.ts'
import { sampleEvent } from './support/sample-event.ts'

function opening(open: (count: number) => Promise<Sink>) {
  let opened = 0
  const definition: SinkDefinition = { type: 'stub', summary: 'A stub', options: z.strictObject({}), open: () => open(++opened) }
  const configured: ConfiguredSink = {
    name: 'stub',
    type: 'stub',
    definition,
    options: {},
    format: 'cloudevents',
    filter: undefined,
    maxAgeSeconds: 60,
    concurrency: 1,
    timeoutSeconds: 1,
  }
  return { sink: selfOpening(configured, testContext), opened: () => opened }
}

const signal = AbortSignal.timeout(60_000)
const working = (closed: string[] = []): Sink => ({
  deliver: async () => delivered,
  check: async () => ({ ok: true, detail: 'fine' }),
  close: async () => void closed.push('closed'),
})

describe('a sink that opens itself', () => {
  it('opens once, at the first delivery or when it is warmed', async () => {
    const { sink, opened } = opening(async () => working())
    expect(opened()).toBe(0)
    sink.warm()
    await Promise.all([1, 2, 3].map((number) => sink.deliver(sampleEvent(number), { signal })))
    expect(opened()).toBe(1)
    await sink.close()
  })

  it('refuses for now where it cannot be opened, and tries again at the next delivery', async () => {
    const { sink, opened } = opening(async (count) => {
      if (count === 1) throw new ForeshockError('sink_unusable', 'the key file is missing')
      return working()
    })
    expect(await sink.deliver(sampleEvent(1), { signal })).toEqual({
      status: 'retry',
      because: 'refused',
      code: 'open_failed',
      detail: 'the key file is missing',
    })
    expect(await sink.deliver(sampleEvent(1), { signal })).toEqual(delivered)
    expect(opened()).toBe(2)
    await sink.close()
  })

  it('tells a check what is wrong, with a cure', async () => {
    const { sink } = opening(async () => {
      throw new ForeshockError('sink_unusable', 'the key file is missing')
    })
    expect(await sink.check({ signal })).toMatchObject({ ok: false, detail: 'the key file is missing' })
  })

  it('closes what it opened and nothing else', async () => {
    const closed: string[] = []
    const unopened = opening(async () => working(closed))
    await unopened.sink.close()
    expect([unopened.opened(), closed]).toEqual([0, []])
    const opened = opening(async () => working(closed))
    await opened.sink.deliver(sampleEvent(1), { signal })
    await opened.sink.close()
    expect(closed).toEqual(['closed'])
    expect(await opened.sink.deliver(sampleEvent(2), { signal })).toMatchObject({ status: 'retry' })
  })

  it('that never finishes opening holds up neither a delivery nor the end', async () => {
    const { sink } = opening(() => new Promise(() => {}))
    const hurry = new AbortController()
    const delivery = sink.deliver(sampleEvent(1), { signal: hurry.signal })
    hurry.abort()
    expect(await delivery).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    await sink.close()
  })
})
