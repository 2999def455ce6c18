import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, vi } from 'vitest'
import { z } from 'zod'
import { parseScenario } from '../../src/simulator/imds/scenario-file.ts'
import { startImdsSimulator, type ImdsSimulator } from '../../src/simulator/imds/server.ts'

/** The program as it is shipped, built once per run by the global setup. */
const entry = fileURLToPath(new URL('../../dist/foreshock.mjs', import.meta.url))

const opened: (() => unknown)[] = []

/** Ends something when the test is over, before it is asked what it left open. */
export function afterwards(end: () => unknown): void {
  opened.push(end)
}

afterEach(async () => {
  for (let end = opened.pop(); end !== undefined; end = opened.pop()) await end()
})

/** Asks again and again until `check` throws no more; long for a machine that is busy. */
export function eventually<T>(check: () => T | Promise<T>, timeout = 15_000): Promise<T> {
  return vi.waitFor(check, { timeout, interval: 20 })
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'foreshock-program-'))
  afterwards(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const logLine = z.looseObject({ level: z.string(), time: z.iso.datetime(), msg: z.string() })
export type LogLine = z.output<typeof logLine>

export interface ProgramOptions {
  /** Added to the environment; undefined takes away. */
  readonly env?: Record<string, string | undefined>
  /** Options of Node itself. */
  readonly node?: readonly string[]
  readonly cwd?: string
}

interface Ended {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Program {
  /** Whole lines so far. */
  readonly stdout: readonly string[]
  readonly stderr: readonly string[]
  /** What was logged so far. Throws where stderr holds anything but log lines. */
  log(): LogLine[]
  send(signal: NodeJS.Signals): void
  /** The reader of its output goes away. */
  closeStdout(): void
  closeStderr(): void
  readonly ended: Promise<Ended>
}

/** Starts the program with these arguments; it is killed when the test is over. */
export function start(args: readonly string[], { env = {}, node = [], cwd }: ProgramOptions = {}): Program {
  const child = spawn(process.execPath, [...node, entry, ...args], {
    env: { ...process.env, FORESHOCK_CONFIG: undefined, FORESHOCK_BOOT_ID: 'boot-1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  const stdout: string[] = []
  const stderr: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => stdout.push(line))
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status, signal) => resolve({ status, signal }))
  })
  afterwards(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    stdout,
    stderr,
    log: () => stderr.map((line) => logLine.parse(JSON.parse(line))),
    send: (signal) => void child.kill(signal),
    closeStdout: () => void child.stdout.destroy(),
    closeStderr: () => void child.stderr.destroy(),
    ended,
  }
}

/** Runs a command to its end. */
export async function run(
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<{ readonly status: number | null; readonly stdout: string; readonly stderr: string }> {
  const program = start(args, options)
  const { status } = await program.ended
  return { status, stdout: joined(program.stdout), stderr: joined(program.stderr) }
}

const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const published = z.looseObject({
  specversion: z.literal('1.0'),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  time: z.string(),
  partitionkey: z.string(),
  data: z.record(z.string(), z.unknown()),
})
/** A CloudEvent as it came out of the program. */
export type Published = z.output<typeof published>

export const readEvent = (json: string): Published => published.parse(JSON.parse(json))

/** The events in a file of the `file` sink, none while there is no file; every line must be whole. */
export function eventsIn(path: string): Published[] {
  return linesIn(path).map(readEvent)
}

/** Lines that are ended, whether or not they are whole events. */
export function linesIn(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** The last word of each type, of events about scheduled events only: `scheduled`, `started`, `completed`. */
export function told(events: readonly Published[]): string[] {
  return events.flatMap(({ type }) => /\.scheduledevent\.(\w+)\.v1$/.exec(type)?.[1] ?? [])
}

/** The same of events about the forwarder itself. */
export function toldOfForwarder(events: readonly Published[]): string[] {
  return events.flatMap(({ type }) => /\.forwarder\.([\w-]+)\.v1$/.exec(type)?.[1] ?? [])
}

/** An entry of `Events`: a reboot of `web_0`, unless said otherwise. */
export function entryOf(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    EventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
    EventStatus: 'Scheduled',
    EventType: 'Reboot',
    ResourceType: 'VirtualMachine',
    Resources: ['web_0'],
    NotBefore: 'Mon, 11 Apr 2033 22:26:58 GMT',
    Description: 'Host server is undergoing maintenance.',
    EventSource: 'Platform',
    DurationInSeconds: -1,
    ...overrides,
  }
}

export const documentOf = (incarnation: number, ...events: readonly unknown[]): Record<string, unknown> => ({
  DocumentIncarnation: incarnation,
  Events: events,
})

/** An IMDS in the hands of the test; nothing is scheduled yet. The name decides the vmId. */
export async function startImds(name = 'stage', vm = 'web_0'): Promise<ImdsSimulator> {
  const imds = await startImdsSimulator({
    scenario: parseScenario(JSON.stringify({ name, vms: [{ name: vm }], events: [] }), 'stage.yaml'),
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  afterwards(() => imds.close())
  imds.setDocument(documentOf(1))
  return imds
}

/** A machine with an IMDS, a folder of its own, and a forwarder to be started on it as often as the test likes. */
export interface Stage {
  readonly imds: ImdsSimulator
  readonly folder: string
  readonly state: string
  /** Of the sink `log`, which is there unless `sinks` are given. */
  readonly file: string
  /** Writes the configuration: top-level keys given here replace those that every test needs. Gives its path. */
  readonly configure: (keys?: Record<string, unknown>) => string
  /** Starts `run` with the configuration as it was written last. */
  readonly forward: (options?: ProgramOptions & { readonly args?: readonly string[] }) => Program
}

export async function openStage(keys: Record<string, unknown> = {}): Promise<Stage> {
  const imds = await startImds()
  const folder = temporaryFolder()
  const state = join(folder, 'state.db')
  const file = join(folder, 'events.jsonl')
  const config = join(folder, 'config.json')
  const configure = (keys: Record<string, unknown> = {}): string => {
    const usual = {
      imds: { endpoint: imds.url, pollIntervalMs: 100 },
      state: { path: state },
      heartbeat: { intervalSeconds: 0 },
      admin: { listen: false },
      sinks: [{ name: 'log', type: 'file', path: file }],
    }
    writeFileSync(config, JSON.stringify({ ...usual, ...keys }, null, 2))
    return config
  }
  configure(keys)
  return {
    imds,
    folder,
    state,
    file,
    configure,
    forward: ({ args = [], ...options } = {}) => start(['run', '--config', config, ...args], options),
  }
}
