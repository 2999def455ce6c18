import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { expect, it } from 'vitest'
import type { HandFault } from '../../src/simulator/imds/scenario-fault.ts'
import { urlOf } from '../../src/simulator/imds/listen.ts'
import type { ImdsSimulator } from '../../src/simulator/imds/server.ts'
import {
  afterwards,
  documentOf,
  entryOf,
  eventsIn,
  eventually,
  openStage,
  told,
  toldOfForwarder,
  type LogLine,
  type Program,
} from '../support/program.ts'
import { startTcpServer } from '../support/tcp-server.ts'

const eventsPath = '/metadata/scheduledevents'
const warnings = (program: Program): string[] => program.log().flatMap(({ level, msg }) => (level === 'info' ? [] : [msg]))
const recoveries = (log: readonly LogLine[]): number => log.filter(({ msg }) => msg.startsWith('IMDS answers again')).length

/** What IMDS answers while an event is under way, and what the one line about it says. */
interface Trouble {
  readonly what: string
  readonly says: RegExp
  readonly fault?: HandFault
  readonly body?: unknown
  readonly manner?: Manner
}

/** How something before IMDS behaves: it passes everything on, says nothing, or answers with a body of which there is always more. */
type Manner = 'honest' | 'silent' | 'dripping'

const live = entryOf({ EventStatus: 'Started', NotBefore: '' })
const { EventId: _, ...withoutId } = live
const nothingScheduled = JSON.stringify(documentOf(9))
const failures: Trouble[] = [
  { what: 'zero bytes', says: /got an empty body/, fault: { kind: 'empty' } },
  { what: 'half a body', says: /expected the whole body/, fault: { kind: 'truncate' } },
  { what: 'half a document', says: /JSON that ends after/, body: JSON.stringify(documentOf(9, live)).slice(0, 90) },
  { what: 'a byte order mark', says: /byte order mark/, body: `\uFEFF${nothingScheduled}` },
  { what: 'bytes that are not UTF-8', says: /not UTF-8/, fault: { kind: 'garbage' } },
  { what: 'an HTML page with 200', says: /not JSON/, fault: { kind: 'html', status: 200 } },
  { what: 'an empty document with 400', says: /got 400/, fault: { kind: 'status', status: 400, body: nothingScheduled } },
  { what: 'an empty document with 201', says: /got 201/, fault: { kind: 'status', status: 201, body: nothingScheduled } },
  { what: 'an empty document with 503', says: /got 503/, fault: { kind: 'status', status: 503, body: nothingScheduled } },
  { what: '10 MB', says: /expected at most 1048576 bytes/, body: `{"Events":[],"x":"${'x'.repeat(10_000_000)}"}` },
  { what: '404', says: /got 404/, fault: { kind: 'status', status: 404 } },
  { what: '410', says: /got 410/, fault: { kind: 'status', status: 410 } },
  { what: '429', says: /got 429/, fault: { kind: 'status', status: 429, headers: { 'Retry-After': '1' } } },
  { what: 'a reset', says: /ECONNRESET/, fault: { kind: 'reset' } },
  { what: 'silence', says: /an answer within 10000 ms/, manner: 'silent' },
  { what: 'a body without end', says: /(an answer|the whole body) within 10000 ms/, manner: 'dripping' },
  { what: 'Events that are a text', says: /"Events" array/, body: { DocumentIncarnation: 9, Events: '[]' } },
  { what: 'no Events', says: /"Events" array/, body: { DocumentIncarnation: 9 } },
  { what: 'a list', says: /"Events" array/, body: [] },
  { what: 'null', says: /"Events" array/, body: 'null' },
  { what: 'an error in JSON', says: /"Events" array/, body: { error: 'Bad request', events: [] } },
]
const oddities: Trouble[] = [
  { what: 'an event without an id', says: /EventId: expected .* got nothing/, body: documentOf(2, withoutId) },
  { what: 'an id that is a number', says: /EventId: expected .* got the number 7/, body: documentOf(2, { ...live, EventId: 7 }) },
  { what: 'a status that is null', says: /EventStatus: expected .* got null/, body: documentOf(2, { ...live, EventStatus: null }) },
  { what: 'a type that is a list', says: /EventType: expected .* got an array/, body: documentOf(2, { ...live, EventType: ['Reboot'] }) },
  { what: 'Resources that are a number', says: /resources could not be read/, body: documentOf(2, { ...live, Resources: 5 }) },
  { what: 'NotBefore that is an object', says: /notBefore could not be read/, body: documentOf(2, { ...live, NotBefore: {} }) },
  { what: 'a duration in words', says: /durationInSeconds could not be read/, body: documentOf(2, { ...live, DurationInSeconds: 'long' }) },
  { what: 'a description that is a number', says: /a description could not be read/, body: documentOf(2, { ...live, Description: 7 }) },
  { what: 'another entry that is a text', says: /expected an event object, got the string/, body: documentOf(2, live, 'Reboot') },
  {
    what: 'another entry without an id',
    says: /EventId: expected/,
    body: documentOf(2, live, { EventType: 'Freeze', EventStatus: 'Started' }),
  },
  { what: 'the same event twice', says: /more than once/, body: documentOf(2, live, live) },
]

/** What is told, logged and recovered when IMDS answers so for a while in the middle of an event, which is over afterwards. */
async function meet({
  what,
  fault,
  body,
  manner = 'honest',
}: Trouble): Promise<{ told: string[]; warnings: string[]; recoveries: number }> {
  const { imds, file, configure, forward } = await openStage()
  const front = await startFront(imds)
  configure({ imds: { endpoint: front.url, pollIntervalMs: 100 } })
  imds.setDocument(documentOf(2, live))
  const forwarder = forward()
  await eventually(() => expect({ what, told: told(eventsIn(file)) }).toEqual({ what, told: ['started'] }), 30_000)
  const before = warnings(forwarder)

  if (fault !== undefined) imds.setFault({ ...fault, on: ['events'] })
  if (body !== undefined) imds.setDocument(body)
  front.become(manner)
  // When the third request is seen, the answers to the two before it were taken in; of those that take ten seconds one is enough.
  const enough = front.polls() + (manner === 'honest' ? 3 : 1)
  await eventually(() => expect({ what, enough: front.polls() >= enough }).toEqual({ what, enough: true }), 30_000)
  imds.setDocument(documentOf(3))
  imds.clearFaults()
  front.become('honest')

  await eventually(() => expect({ what, more: told(eventsIn(file)).length > 1 }).toEqual({ what, more: true }), 30_000)
  forwarder.send('SIGTERM')
  await forwarder.ended
  return { told: told(eventsIn(file)), warnings: warnings(forwarder).slice(before.length), recoveries: recoveries(forwarder.log()) }
}

const meetAll = async (troubles: readonly Trouble[]) =>
  Object.fromEntries(await Promise.all(troubles.map(async (trouble) => [trouble.what, await meet(trouble)] as const)))

it(
  'concludes nothing from any answer that is no document, says so in one line, and tells the true end afterwards',
  { timeout: 60_000 },
  async () => {
    expect(await meetAll(failures)).toEqual(
      Object.fromEntries(
        failures.map(({ what, says }) => [
          what,
          { told: ['started', 'completed'], warnings: [expect.stringMatching(says)], recoveries: 1 },
        ]),
      ),
    )
  },
)

it(
  'keeps an event whose entry cannot be read for a while, says so once, and tells its true end afterwards',
  { timeout: 60_000 },
  async () => {
    expect(await meetAll(oddities)).toEqual(
      Object.fromEntries(
        oddities.map(({ what, says }) => [
          what,
          { told: ['started', 'completed'], warnings: [expect.stringMatching(says)], recoveries: 0 },
        ]),
      ),
    )
  },
)

it('does not follow a redirect: where it points to is never connected to', async () => {
  let connections = 0
  const trap = await startTcpServer(() => (connections += 1))
  afterwards(() => trap.stop())
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, live))
  const forwarder = forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['started']))
  imds.setFault({ kind: 'status', status: 302, headers: { Location: `http://127.0.0.1:${trap.port}${eventsPath}` } })
  await eventually(() => expect(warnings(forwarder).at(-1)).toMatch(/got 302 to .*: not followed/))
  imds.setDocument(documentOf(3))
  imds.clearFaults()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['started', 'completed']))
  expect(connections).toBe(0)
})

it('tells that IMDS is unreachable, and that it answers again', { timeout: 60_000 }, async () => {
  const { imds, file, configure, forward } = await openStage()
  configure({ imds: { endpoint: imds.url, pollIntervalMs: 100, unreachableAfterFailures: 2 } })
  const forwarder = forward()
  await eventually(() => expect(toldOfForwarder(eventsIn(file))).toEqual(['started']))
  imds.setFault({ kind: 'status', status: 500, on: ['events'] })
  await eventually(() => expect(toldOfForwarder(eventsIn(file))).toEqual(['started', 'imds-unreachable']))
  imds.clearFaults()
  await eventually(() => expect(toldOfForwarder(eventsIn(file))).toEqual(['started', 'imds-unreachable', 'imds-recovered']))
  forwarder.send('SIGTERM')
  expect(await forwarder.ended).toEqual({ status: 0, signal: null })
  const [, unreachable, recovered] = eventsIn(file)
  expect(unreachable?.data).toMatchObject({ failures: 2, lastError: expect.stringMatching(/got 500/) })
  expect(recovered?.data['lastGoodPollAt']).toBe(unreachable?.data['lastGoodPollAt'])
})

interface Front {
  readonly url: string
  /** Requests for the events so far. */
  polls(): number
  become(manner: Manner): void
}

async function startFront(imds: ImdsSimulator): Promise<Front> {
  let manner: Manner = 'honest'
  let polls = 0
  const server = createServer((asked, answer) => {
    const { method, headers, url = '/' } = asked
    if (url.startsWith(eventsPath)) polls += 1
    if (manner === 'silent') return
    if (manner === 'dripping') {
      answer.writeHead(200, { 'Content-Type': 'application/json' }).write('{"Events":[')
      const drops = setInterval(() => answer.write(' '), 50)
      answer.once('close', () => clearInterval(drops))
      return
    }
    const passed = request(new URL(url, imds.url), { method, headers, agent: false }, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers)
      // A body that is cut short is passed on cut short.
      given.on('error', () => answer.destroy())
      given.pipe(answer)
    })
    passed.on('error', () => asked.socket.resetAndDestroy())
    // Whoever asked may have had enough in the middle.
    answer.once('close', () => passed.destroy())
    asked.pipe(passed)
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
  return { url: urlOf(server), polls: () => polls, become: (next) => (manner = next) }
}
