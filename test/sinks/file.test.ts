import { execFile } from 'node:child_process'
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Sink } from '../../sinks/contract.ts'
import { structuredJson } from '../../sinks/encodings/structured.ts'
import file from '../../sinks/file.ts'
import { arrivedFromLines } from '../support/arrived.ts'
import { sampleEvent } from '../support/sample-event.ts'
import { describeSinkConformance, openSink, unhurried } from '../support/sink-conformance.ts'

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'foreshock-file-'))
const line = (number: number): string => structuredJson(sampleEvent(number)) + '\n'
const eventsIn = (folder: string): string => join(folder, 'events.jsonl')

describeSinkConformance<string>({
  definition: file,
  start: newFolder,
  stop: (folder) => rm(folder, { recursive: true, force: true }),
  options: (folder) => ({ path: eventsIn(folder) }),
  async arrived(folder) {
    const names = await readdir(folder)
    return names.includes('events.jsonl') ? arrivedFromLines(await readFile(eventsIn(folder), 'utf8')) : []
  },
  down: { lacks: 'a local disk fails only in ways that the tests of this sink name' },
  throttled: { lacks: 'a local disk has no limits on requests' },
  refused: {
    cause: (folder) => mkdir(eventsIn(folder)).then(() => {}),
    heal: (folder) => rm(eventsIn(folder), { recursive: true }),
    refusal: 'refused',
  },
  hanging: { lacks: 'a local disk answers' },
  checkFails: (folder) => rm(folder, { recursive: true }),
})

describe('a file of events', () => {
  let folder: string
  let path: string
  let sink: Sink

  beforeEach(async () => {
    folder = await newFolder()
    path = eventsIn(folder)
    sink = await openSink(file, { path })
  })
  afterEach(async () => {
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  })

  const deliver = (number: number): ReturnType<Sink['deliver']> => sink.deliver(sampleEvent(number), unhurried())
  const content = (): Promise<string> => readFile(path, 'utf8')

  it('does not get what was given up while another write was under way', async () => {
    const time = new AbortController()
    const first = deliver(1)
    const second = sink.deliver(sampleEvent(2), time)
    time.abort()
    expect(await second).toMatchObject({ status: 'retry', because: 'transient', code: 'aborted' })
    expect(await first).toEqual({ status: 'delivered' })
    await deliver(3)
    expect(await content()).toBe(line(1) + line(3))
  })

  it('is created for owner and group alone', async () => {
    await deliver(1)
    expect((await stat(path)).mode & 0o777).toBe(0o640 & ~process.umask())
    expect(await content()).toBe(line(1))
  })

  it('is appended to, with its mode left as it is', async () => {
    await writeFile(path, line(1), { mode: 0o600 })
    await deliver(2)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await content()).toBe(line(1) + line(2))
  })

  it('keeps the order in which events came', async () => {
    const numbers = Array.from({ length: 50 }, (_, index) => index)
    await Promise.all(numbers.map((number) => deliver(number)))
    expect(await content()).toBe(numbers.map((number) => line(number)).join(''))
  })

  it('has its last line closed where a crash cut it short, so that no line is glued', async () => {
    const cut = line(1).slice(0, 40)
    await writeFile(path, cut)
    await deliver(2)
    expect(await content()).toBe(`${cut}\n${line(2)}`)
  })

  it('has a line closed that another program left open meanwhile', async () => {
    await deliver(1)
    await appendFile(path, 'half a li')
    await deliver(2)
    expect(await content()).toBe(`${line(1)}half a li\n${line(2)}`)
  })

  it('is opened anew when it is rotated away', async () => {
    await deliver(1)
    await rename(path, `${path}.1`)
    await deliver(2)
    expect(await readFile(`${path}.1`, 'utf8')).toBe(line(1))
    expect(await content()).toBe(line(2))
  })

  it('is opened anew when it is rotated and made again by the rotation', async () => {
    await deliver(1)
    await rename(path, `${path}.1`)
    await writeFile(path, '')
    await deliver(2)
    expect(await content()).toBe(line(2))
  })

  it('is made again when it is deleted', async () => {
    await deliver(1)
    await unlink(path)
    await deliver(2)
    expect(await content()).toBe(line(2))
  })

  it('starts from the beginning when it is truncated in place (copytruncate)', async () => {
    await deliver(1)
    await truncate(path)
    await deliver(2)
    expect(await content()).toBe(line(2))
  })

  it('loses no event that it called delivered while it is rotated under it', async () => {
    const delivered: number[] = []
    for (let number = 0; number < 60; number += 1) {
      const delivering = deliver(number)
      // Fails while there is nothing to rotate.
      await Promise.allSettled([rename(path, `${path}.${number}`)])
      if ((await delivering).status === 'delivered') delivered.push(number)
    }
    const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')))
    const ids = texts.flatMap((text) => arrivedFromLines(text)).map((event) => event.attributes['id'])
    expect(delivered.length).toBeGreaterThan(0)
    expect(ids).toEqual(expect.arrayContaining(delivered.map((number) => sampleEvent(number).id)))
  })

  it('is not replaced where the path is a symbolic link', async () => {
    await writeFile(join(folder, 'real.jsonl'), '')
    await symlink('real.jsonl', path)
    await deliver(1)
    expect(await readFile(join(folder, 'real.jsonl'), 'utf8')).toBe(line(1))
  })

  it.each([
    ['the directory is missing', 'missing/events.jsonl', 'enoent'],
    ['a part of the path is a file', 'plain/events.jsonl', 'enotdir'],
    ['the name is too long', 'x'.repeat(300), 'enametoolong'],
    ['the path is a loop of links', 'loop', 'eloop'],
    ['the path is a directory', '.', 'not_a_file'],
  ])('keeps its events and says what to do where %s', async (_, name, code) => {
    await writeFile(join(folder, 'plain'), '')
    await symlink('loop', join(folder, 'loop'))
    const other = await openSink(file, { path: join(folder, name) })
    expect(await other.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code })
    expect(await other.check(unhurried())).toMatchObject({ ok: false, cure: expect.stringMatching(/^.+$/) })
    await other.close()
  })

  it('is no device: fsync means nothing there', async () => {
    const other = await openSink(file, { path: '/dev/null' })
    expect(await other.deliver(sampleEvent(1), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code: 'not_a_file' })
    await other.close()
  })

  it('survives a write that stops in the middle: what follows stands on a line of its own', async () => {
    // A limit on the size of files makes the kernel write a part and then refuse, as a full disk does.
    const program = join(import.meta.dirname, '../fixtures/deliver-to-file.mjs')
    const run = promisify(execFile)('sh', ['-c', 'ulimit -f 3; exec "$0" "$@"', process.execPath, program, path, '8'])
    const outcomes = z.array(z.looseObject({ status: z.string() })).parse(JSON.parse((await run).stdout))
    const whole = outcomes.filter((outcome) => outcome.status === 'delivered').length
    expect(whole).toBeGreaterThan(0)
    expect(outcomes.at(-1)).toMatchObject({ status: 'retry', because: 'refused', code: 'efbig' })
    const cut = await content()
    expect(cut).toMatch(/[^\n]$/)

    expect(await deliver(9)).toEqual({ status: 'delivered' })
    expect(await content()).toBe(`${cut}\n${line(9)}`)
    expect(cut.split('\n').slice(0, whole)).toEqual(Array.from({ length: whole }, (_, number) => line(number).trimEnd()))
  })

  it('is closed with the sink', async () => {
    await deliver(1)
    await sink.close()
    const descriptors = await readdir('/proc/self/fd')
    const targets = await Promise.allSettled(descriptors.map((descriptor) => readlink(`/proc/self/fd/${descriptor}`)))
    expect(targets.filter((target) => target.status === 'fulfilled' && target.value === path)).toEqual([])
    expect(await deliver(2)).toMatchObject({ status: 'retry', code: 'closed' })
  })

  it('is not created by a check', async () => {
    expect(await sink.check(unhurried())).toEqual({ ok: true, detail: `${path} will be created` })
    expect(await readdir(folder)).toEqual([])
    await deliver(1)
    expect(await sink.check(unhurried())).toEqual({ ok: true, detail: `${path} can be appended to` })
    expect(await content()).toBe(line(1))
  })
})
