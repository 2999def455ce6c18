import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { structuredJson } from '../../sinks/encodings/structured.ts'
import stdout, { lineSink } from '../../sinks/stdout.ts'
import { arrivedFromJson, arrivedFromLines } from '../support/arrived.ts'
import { largeEvent, sampleEvent } from '../support/sample-event.ts'
import { describeSinkConformance, testContext, unhurried } from '../support/sink-conformance.ts'

/** Another program at the other end of a real pipe. */
interface Reader {
  readonly child: ChildProcess
  readonly pipe: Writable
  /** What it has read, once it has read everything that was written. */
  text(): Promise<string>
}

async function startReader(): Promise<Reader> {
  const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] })
  let read = ''
  let marks = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (read += chunk))
  child.stdin.on('error', () => {})
  await once(child, 'spawn')
  return {
    child,
    pipe: child.stdin,
    async text() {
      const mark = `#${(marks += 1)}\n`
      child.stdin.write(mark)
      while (!read.endsWith(mark)) await once(child.stdout, 'data')
      return read.replaceAll(/^#.*$/gm, '')
    },
  }
}

async function stopReader({ child }: Reader): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'close')
}

/** The reader stands still and the pipe is full, so the next line waits. Blank lines are no events. */
function block({ child, pipe }: Reader): void {
  child.kill('SIGSTOP')
  pipe.write('\n'.repeat(1024 * 1024))
}

let current: Writable = process.stdout

describeSinkConformance<Reader>({
  definition: { ...stdout, open: async () => lineSink(current, testContext.format) },
  async start() {
    const reader = await startReader()
    current = reader.pipe
    return reader
  },
  stop: stopReader,
  options: () => ({}),
  arrived: async (reader) => arrivedFromLines(await reader.text()),
  down: { lacks: 'a pipe has a reader or is broken for good' },
  throttled: { lacks: 'a pipe says nothing' },
  refused: { cause: stopReader, heal: { lacks: 'a broken pipe stays broken' }, refusal: 'refused' },
  hanging: { cause: block, heal: ({ child }) => void child.kill('SIGCONT'), reached: () => Promise.resolve() },
  checkFails: ({ pipe }) => void pipe.destroy(),
})

describe('a reader that stands still', () => {
  it('cannot make the backlog grow without bound, and gets each line in the end', async () => {
    const reader = await startReader()
    const sink = lineSink(reader.pipe, testContext.format)
    block(reader)
    const before = reader.pipe.writableLength
    for (let attempt = 0; attempt < 40; attempt += 1) {
      const outcome = await sink.deliver(largeEvent(1), { signal: AbortSignal.timeout(1) })
      expect(outcome).toMatchObject({ status: 'retry', because: 'transient', code: 'timeout' })
    }
    expect(reader.pipe.writableLength - before).toBeLessThan(6 * 64 * 1024)

    const delivering = sink.deliver(sampleEvent(2), unhurried())
    reader.child.kill('SIGCONT')
    expect(await delivering).toEqual({ status: 'delivered' })
    await sink.close()
    expect(arrivedFromLines(await reader.text()).at(-1)).toEqual(arrivedFromJson(sampleEvent(2)))
    await stopReader(reader)
  })
})

describe('the standard output of a process', () => {
  it('gets one line per event; when its reader goes away the process stays, and says so', async () => {
    const child = fork(join(import.meta.dirname, '../fixtures/deliver-to-stdout.mjs'), { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    expect(await once(child, 'message')).toContain('ready')
    const deliver = async (number: number): Promise<unknown> => {
      child.send(number)
      const [outcome] = await once(child, 'message')
      return outcome
    }
    const { stdout: output } = child
    if (output === null) throw new TypeError('expected a pipe')

    const reading = once(output, 'data')
    expect(await deliver(1)).toEqual({ status: 'delivered' })
    expect(String(await reading)).toBe(structuredJson(sampleEvent(1)) + '\n')

    output.destroy()
    await once(output, 'close')
    const broken = { status: 'retry', because: 'refused', code: 'stdout_broken', detail: expect.stringContaining('EPIPE') }
    expect(await deliver(2)).toEqual(broken)
    expect(await deliver(3)).toEqual(broken)

    child.disconnect()
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})
