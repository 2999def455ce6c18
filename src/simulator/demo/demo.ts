import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import type { Logger } from '../../log.ts'
import { loadScenario } from '../imds/scenario-file.ts'
import { startImdsSimulator, type ImdsSimulator } from '../imds/server.ts'
import { startForwarder, type ForwarderProcess } from './forwarder-process.ts'
import { tell } from './story.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'

export interface DemoOptions {
  /** Ready scenario, or path of a scenario file. */
  readonly scenario: string
  /** Scenario seconds per real second. */
  readonly speed: number
  /** Path of this program, to run the forwarder as a process of its own. */
  readonly program: string
  /** Goes on after the story, until `signal` aborts. */
  readonly keep: boolean
  readonly signal: AbortSignal
  readonly log: Logger
  /** Gets each line of the story. */
  readonly say: (line: string) => void
}

/** What a sink got: distinct events and, among them, copies. */
interface Received {
  readonly sink: string
  readonly ids: ReadonlySet<string>
  readonly copies: number
  /** Count of distinct events: scheduled events by their state, others by their family. */
  readonly kinds: Readonly<Record<string, number>>
}

export interface DemoResult {
  readonly received: readonly Received[]
  /** Every sink got every event, and the forwarder ended well. */
  readonly complete: boolean
}

/**
 * Everything on this machine, over real sockets: the IMDS simulator, a webhook receiver, and the real forwarder as a process of its own. When the
 * machine of the story reboots, the forwarder is killed as a power cut would kill it, and started again once the machine is back.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { signal, say } = options
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'foreshock-demo-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))

  const boxes = { stdout: box('stdout'), webhook: box('webhook') }
  let reboot = Promise.withResolvers<string>()
  const got = (received: Box, event: CloudEvent): void => {
    if (received.put(event)) say(`${received.sink.padEnd(8)} <- ${tell(event, Date.now())}`)
    if (isRebootOfThisVm(event)) reboot.resolve(event.partitionkey)
  }

  const simulator = await startImdsSimulator({ scenario: await loadScenario(options.scenario), speed: options.speed, log: options.log })
  stack.defer(() => simulator.close())
  const receiver = await startWebhookReceiver((event) => got(boxes.webhook, event))
  stack.defer(() => receiver.close())
  const configFile = join(folder, 'config.json')
  await writeFile(configFile, JSON.stringify(configuration(simulator.url, receiver.url, join(folder, 'state.db'))))
  say(`IMDS simulator on ${simulator.url}, scenario ${options.scenario} at ${options.speed} times real speed`)
  say(`webhook receiver on ${receiver.url}`)

  const start = (): ForwarderProcess =>
    startForwarder({ program: options.program, configFile, bootId: randomUUID(), onEvent: (event) => got(boxes.stdout, event) })
  let forwarder = start()
  stack.defer(async () => {
    forwarder.signal('SIGKILL')
    await forwarder.ended
  })
  say('forwarder started')

  const aborted = new Promise<'aborted'>((resolve) => signal.addEventListener('abort', () => resolve('aborted'), { once: true }))
  for (;;) {
    const next = await Promise.race([
      simulator.finished,
      reboot.promise.then((eventId) => ({ eventId })),
      forwarder.ended.then((status) => ({ status })),
      aborted,
    ])
    if (typeof next === 'string') break
    if ('status' in next) return { received: all(boxes), complete: false }
    say(`power     the machine goes down: the forwarder is killed (SIGKILL)`)
    forwarder.signal('SIGKILL')
    await forwarder.ended
    await untilGone(simulator, next.eventId, signal)
    say(`power     the machine is back: the forwarder starts again, with its state file`)
    reboot = Promise.withResolvers<string>()
    forwarder = start()
  }

  await untilEqual(boxes, signal)
  if (options.keep && !signal.aborted) {
    say('the story is told; everything goes on running until you interrupt it')
    await aborted
  }
  forwarder.signal('SIGTERM')
  const status = await forwarder.ended
  say(`forwarder stopped, exit status ${status}`)
  const received = all(boxes)
  return { received, complete: status === 0 && sameIds(received) && received.every(({ ids }) => ids.size > 0) }
}

/** A forwarder's configuration, as somebody would write it. */
function configuration(endpoint: string, hook: string, path: string): unknown {
  return {
    imds: { endpoint, pollIntervalMs: 250 },
    state: { path },
    heartbeat: { intervalSeconds: 0 },
    sinks: [
      { name: 'stdout', type: 'stdout' },
      { name: 'webhook', type: 'webhook', url: hook },
    ],
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'warn' },
  }
}

interface Box extends Received {
  /** False for a copy of what is there. */
  put(event: CloudEvent): boolean
}

function box(sink: string): Box {
  const ids = new Set<string>()
  const kinds: Record<string, number> = {}
  let copies = 0
  return {
    sink,
    ids,
    kinds,
    get copies() {
      return copies
    },
    put(event) {
      if (ids.has(event.id)) {
        copies += 1
        return false
      }
      ids.add(event.id)
      const [family = '', state = ''] = event.type.split('.').slice(-3)
      const kind = family === 'scheduledevent' ? state : family
      kinds[kind] = (kinds[kind] ?? 0) + 1
      return true
    },
  }
}

const all = (boxes: Record<string, Received>): Received[] => Object.values(boxes)

const sameIds = (received: readonly Received[]): boolean =>
  received.every(({ ids }) => received.every((other) => ids.symmetricDifference(other.ids).size === 0))

const isRebootOfThisVm = (event: CloudEvent): boolean =>
  event.type.endsWith('.scheduledevent.started.v1') && (event['azeventtype'] === 'Reboot' || event['azeventtype'] === 'Redeploy')

/** The machine is down until its event is over. */
async function untilGone(simulator: ImdsSimulator, eventId: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && simulator.moment().events.some(({ event }) => event.id.toLowerCase() === eventId)) await sleep(50)
}

/** What one sink has is on its way to the other; a few seconds are ample on loopback. */
async function untilEqual(boxes: Record<string, Received>, signal: AbortSignal): Promise<void> {
  await sleep(750)
  for (let waited = 0; waited < 5000 && !sameIds(all(boxes)) && !signal.aborted; waited += 50) await sleep(50)
}
