import { createHash, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFailed } from 'vitest'
import { urlOf } from '../../src/simulator/imds/listen.ts'
import {
  afterwards,
  documentOf,
  entryOf,
  eventually,
  linesIn,
  openStage,
  readEvent,
  type Program,
  type Published,
} from '../support/program.ts'

const lanes = 5
const killsPerLane = 40

/** A seeded sequence of numbers in [0, 1). Source: https://github.com/bryc/code/blob/master/jshash/PRNGs.md#mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** One document of the script, and the ids that it brings. */
interface Step {
  readonly document: unknown
  readonly ids: readonly string[]
}

/**
 * A story without end: a reboot and a freeze that overlap, each scheduled, put off, started and gone, under ids of their own in every round.
 * The ids of the CloudEvents are made here from the specification alone.
 */
function* story(): Generator<Step, never> {
  let incarnation = 1
  for (let round = 0; ; round += 1) {
    const event = (name: string, type: string) => {
      const EventId = `${name}-${round}`
      return (EventStatus: string, NotBefore: string) => entryOf({ EventId, EventType: type, EventStatus, NotBefore })
    }
    const reboot = event('reboot', 'Reboot')
    const freeze = event('freeze', 'Freeze')
    const [soon, later] = ['Mon, 11 Apr 2033 22:26:58 GMT', 'Tue, 12 Apr 2033 22:26:58 GMT']
    const step = (present: Record<string, unknown>[], ids: string[]): Step => ({
      document: documentOf((incarnation += 1), ...present),
      ids,
    })
    const rebootEnds = step([freeze('Started', '')], [`reboot-${round}:ended`])
    yield step([reboot('Scheduled', soon)], [idOf(reboot('Scheduled', soon))])
    yield step([reboot('Scheduled', later), freeze('Scheduled', soon)], [idOf(reboot('Scheduled', later)), idOf(freeze('Scheduled', soon))])
    yield step([reboot('Started', ''), freeze('Started', '')], [idOf(reboot('Started', '')), idOf(freeze('Started', ''))])
    yield rebootEnds
    yield step([], [`freeze-${round}:ended`])
  }
}

/** `{eventid}:{status}:{digest16}`, with the hash over canonical JSON. */
function idOf(entry: Record<string, unknown>): string {
  const notBefore = entry['NotBefore'] === '' ? null : `${new Date(String(entry['NotBefore'])).toISOString().slice(0, 19)}Z`
  const { DurationInSeconds, EventSource, EventStatus, EventType, Resources } = entry
  // Keys in the order of the alphabet, as canonical JSON wants them.
  const content = {
    durationInSeconds: DurationInSeconds,
    eventSource: EventSource,
    eventStatus: EventStatus,
    eventType: EventType,
    notBefore,
    resources: Resources,
  }
  const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16)
  return `${String(entry['EventId'])}:${String(EventStatus).toLowerCase()}:${digest}`
}

/** Answers a little late, so that a kill may come between sending and answering. */
async function startSlowWebhook(random: () => number): Promise<{ readonly url: string; readonly bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    text(request).then(
      async (body) => {
        bodies.push(body)
        await sleep(random() * 30)
        response.writeHead(204).end()
      },
      // Killed while it was sending.
      () => response.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterwards(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return { url: urlOf(server), bodies }
}

/** Lines that a kill cut short are no events: theirs comes again. */
function wholeEventsIn(path: string): Published[] {
  return linesIn(path).flatMap((line) => (line.endsWith('}') && isJson(line) ? [readEvent(line)] : []))
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return false
  }
}

const aboutEvents = (events: readonly Published[]): Published[] => events.filter(({ type }) => type.includes('.scheduledevent.'))

const running = (program: Program): Promise<void> => eventually(() => expect(program.stderr.join()).toContain('foreshock runs'), 60_000)

interface Outcome {
  /** Ids of the script, in its order. */
  readonly expected: string[]
  readonly webhook: Published[]
  readonly file: Published[]
}

/** Kills the forwarder again and again at random moments while the script goes on, then lets it live and catch up. */
async function torment(random: () => number): Promise<Outcome> {
  const hook = await startSlowWebhook(random)
  const { imds, file, configure, forward } = await openStage()
  configure({
    imds: { endpoint: imds.url, pollIntervalMs: 100 },
    sinks: [
      { name: 'hook', type: 'webhook', url: hook.url },
      { name: 'log', type: 'file', path: file },
    ],
  })
  const received = (): Published[] => hook.bodies.map(readEvent)
  const expected: string[] = []
  const script = story()
  let current: Step = { document: null, ids: [] }

  /** The script goes on once everything was observed: what one sink has was committed for both. */
  const goOn = (): void => {
    const arrived = new Set([...received(), ...wholeEventsIn(file)].map(({ id }) => id))
    if (!current.ids.every((id) => arrived.has(id))) return
    current = script.next().value
    expected.push(...current.ids)
    imds.setDocument(current.document)
  }
  goOn()
  const turns = setInterval(goOn, 20)
  try {
    for (let kill = 0; kill < killsPerLane; kill += 1) {
      const program = forward()
      // Every second one while it starts, the others while it works, however long starting takes on a busy machine.
      if (kill % 2 === 0) await running(program)
      await sleep(random() * 300)
      program.send('SIGKILL')
      await program.ended
    }
  } finally {
    clearInterval(turns)
  }
  forward()
  await eventually(() => {
    for (const arrived of [received(), wholeEventsIn(file)]) {
      const ids = new Set(arrived.map(({ id }) => id))
      expect(expected.filter((id) => !ids.has(id))).toEqual([])
    }
  }, 60_000)
  return { expected, webhook: aboutEvents(received()), file: aboutEvents(wholeEventsIn(file)) }
}

const distinctIds = (events: readonly Published[]): string[] => [...new Set(events.map(({ id }) => id))]
const grouped = (ids: readonly string[]): Record<string, string[]> =>
  Object.fromEntries(Map.groupBy(ids, (id) => id.slice(0, id.indexOf(':'))))

it(
  `loses nothing, invents nothing and keeps the order when it is killed ${lanes * killsPerLane} times at any moment`,
  { timeout: 180_000 },
  async () => {
    const seed = Number(process.env['FORESHOCK_TEST_SEED'] ?? randomInt(2 ** 31))
    onTestFailed(() => void process.stderr.write(`seed of the moments: FORESHOCK_TEST_SEED=${seed}\n`))
    const outcomes = await Promise.all(Array.from({ length: lanes }, (_, lane) => torment(seeded(seed + lane))))
    for (const { expected, webhook, file } of outcomes) {
      expect(expected.length).toBeGreaterThan(10)
      for (const arrived of [webhook, file]) expect(grouped(distinctIds(arrived))).toEqual(grouped(expected))
      const copies = Map.groupBy([...webhook, ...file], ({ id }) => id)
      for (const [first, ...others] of copies.values()) for (const other of others) expect(other).toEqual(first)
    }
  },
)
