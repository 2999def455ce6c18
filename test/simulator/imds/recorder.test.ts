import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen, shut, urlOf } from '../../../src/simulator/imds/listen.ts'
import { recordedFrame } from '../../../src/simulator/imds/recorded-frame.ts'
import { recordScenario, type Recording } from '../../../src/simulator/imds/recorder.ts'
import { loadScenario, parseScenario } from '../../../src/simulator/imds/scenario-file.ts'
import { frameBody } from '../../../src/simulator/imds/scenario-frame.ts'
import type { Scenario } from '../../../src/simulator/imds/scenario.ts'
import { afterwards, ask, epoch, eventsPath, play, silent, type Reply } from './play.ts'

let folder = ''
let files = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'foreshock-record-'))
})
afterAll(() => rm(folder, { recursive: true }))

interface Running {
  readonly out: string
  stop(): Promise<Recording>
  /** Resolves when the file holds `count` frames. */
  frames(count: number): Promise<Scenario>
}

function record(endpoint: string, clock?: () => number): Running {
  const out = join(folder, `${(files += 1)}.yaml`)
  const stopping = new AbortController()
  const options = { endpoint, apiVersion: '2020-07-01', signal: stopping.signal, out, intervalMs: 5, now: () => epoch, log: silent }
  const recording = recordScenario({ ...options, ...(clock && { clock }) })
  afterwards(async () => {
    stopping.abort()
    await recording
  })
  return {
    out,
    stop: () => {
      stopping.abort()
      return recording
    },
    async frames(count) {
      await expect.poll(async () => (await loadScenario(out)).documents?.length, { timeout: 10_000, interval: 10 }).toBe(count)
      return loadScenario(out)
    },
  }
}

async function serve(listener: RequestListener): Promise<string> {
  const server = await listen(listener, 0, '127.0.0.1')
  afterwards(() => shut(server))
  return urlOf(server)
}

describe('a recording', () => {
  it('of a whole story is replayed byte for byte, failures included', async () => {
    const source = await play(await loadScenario('live-migration'))
    let clock = 0
    const running = record(source.url, () => clock)
    const heard: Reply[] = []
    const steps: (() => void)[] = [
      () => source.to(0),
      () => source.to(60),
      () => source.setFault({ kind: 'status', status: 503 }),
      () => source.setFault({ kind: 'garbage' }),
      () => source.setDocument('{ "Events": [],\r\n "DocumentIncarnation": 1.0 }\n'),
      () => source.setDocument(null),
      () => source.to(960),
      () => source.setFault({ kind: 'empty' }),
      () => source.to(1440),
    ]
    for (const [index, step] of steps.entries()) {
      clock = index * 1000
      if (index !== 3) source.clearFaults()
      step()
      await running.frames(index + 1)
      heard.push(await ask(source.url + eventsPath()))
    }
    expect((await running.stop()).frames).toBe(steps.length)

    const replay = await play(await loadScenario(running.out))
    for (const [index, reply] of heard.entries()) {
      replay.to(index + 0.5)
      const again = await ask(replay.url + eventsPath())
      expect([again.status, again.bytes]).toEqual([reply.status, reply.bytes])
    }
  })

  it('is a valid file at every moment, from before the first answer on', async () => {
    let silence = true
    const url = await serve((request, response) => {
      if (request.url?.startsWith('/metadata/instance') === true) response.end('{}')
      else if (!silence) response.end('{"DocumentIncarnation":1,"Events":[]}')
    })
    const running = record(url)
    expect((await running.frames(0)).recorded).toEqual({ endpoint: url, apiVersion: '2020-07-01', startedAt: '2026-05-21T10:00:00.000Z' })
    expect(await running.stop()).toEqual({ polls: 0, frames: 0 })
    silence = false
    const second = record(url)
    await second.frames(1)
    const text = await readFile(second.out, 'utf8')
    expect(parseScenario(text, 'x').name).toBe('recorded-2026-05-21t10-00-00')
  })

  it('knows a reset and goes on after it', async () => {
    const source = await play(await loadScenario('live-migration'))
    source.setFault({ kind: 'reset', on: ['events'], times: 3 })
    const running = record(source.url)
    expect((await running.frames(2)).documents).toMatchObject([{ noAnswer: 'reset' }, { status: 200 }])
  })

  it('does not follow a redirect, and refuses a body beyond 1 MiB', async () => {
    const elsewhere: string[] = []
    const other = await serve((request, response) => {
      elsewhere.push(request.url ?? '')
      response.end('{}')
    })
    let polls = 0
    const url = await serve((request, response) => {
      const instance = request.url?.startsWith('/metadata/instance') === true
      if (!instance) polls += 1
      if (instance) response.writeHead(404).end()
      else if (polls === 1) response.writeHead(302, { Location: other }).end()
      else response.end(Buffer.alloc(1_048_577, 'x'))
    })
    expect((await record(url).frames(2)).documents).toMatchObject([{ status: 302, body: '' }, { noAnswer: 'reset' }])
    expect(elsewhere).toEqual([])
  })

  it('keeps the place of the machine, but neither tags nor keys nor the subscription', async () => {
    const subscription = 'a1b2c3d4-0000-4000-8000-123456789abc'
    const resource = `/subscriptions/${subscription.toUpperCase()}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/web_7`
    const secrets = {
      tags: 'password:hunter2',
      tagsList: [{ name: 'password', value: 'hunter2' }],
      userData: 'aHVudGVyMg==',
      publicKeys: ['ssh'],
    }
    const compute = { name: 'web_7', zone: '2', subscriptionId: subscription, resourceId: resource, ...secrets }
    const url = await serve((request, response) => {
      const newest = request.url?.includes('2025-04-07') === true
      if (newest) response.writeHead(400)
      response.end(JSON.stringify(request.url?.startsWith('/metadata/instance') === true ? compute : { Events: [] }))
    })
    const running = record(url)
    const { vms } = await running.frames(1)
    const zeros = '00000000-0000-0000-0000-000000000000'
    const resourceId = `/subscriptions/${zeros}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/web_7`
    expect(vms).toEqual([{ name: 'web_7', compute: { name: 'web_7', zone: '2', subscriptionId: zeros, resourceId } }])
    expect(await readFile(running.out, 'utf8')).not.toMatch(/hunter2|aHVudGVyMg|ssh|a1b2c3d4/i)
  })

  it('does not overwrite a file, and wants an endpoint that is one', async () => {
    const { url } = await play(await loadScenario('cancelled'))
    const out = join(folder, 'there.yaml')
    await writeFile(out, 'precious')
    const options = { apiVersion: '2020-07-01', signal: new AbortController().signal, intervalMs: 5, log: silent }
    await expect(recordScenario({ ...options, endpoint: url, out })).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/EEXIST/),
    })
    expect(await readFile(out, 'utf8')).toBe('precious')
    const fresh = join(folder, 'fresh.yaml')
    await expect(recordScenario({ ...options, endpoint: 'imds', out: fresh })).rejects.toMatchObject({ code: 'usage' })
  })

  it('gives back any bytes whatsoever', () => {
    const bytes = fc.oneof(
      fc.uint8Array().map((array) => Buffer.from(array)),
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .constantFrom('\uFEFF{}', ' a\n\n b\u2028c\r\n', '{"b":1,"a":1,"1":0}', '1e400', '- x: |\n', 'null', '"2020-07-01"')
        .map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(bytes, (body) => {
        const text = `name: a\ndocuments:\n${recordedFrame({ status: 200, headers: {}, body }, 0)}`
        const frame = parseScenario(text, 'x').documents?.[0]
        expect(frame && frameBody(frame)).toEqual(body)
      }),
      { numRuns: 150 },
    )
  })
})
