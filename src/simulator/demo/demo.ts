import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'
import type { Logger } from '../../log.ts'
import { startBroker } from '../broker/broker.ts'
import { loadEntities } from '../broker/entities.ts'
import { loadScenario } from '../imds/scenario-file.ts'
import { startImdsSimulator, type ImdsSimulator } from '../imds/server.ts'
import { readEventHub, readSubscription } from './azure-consumers.ts'
import { hireOperator } from './remote-operator.ts'
import { startForwarder, type ForwarderProcess } from './forwarder-process.ts'
import { createLedger, type Ledger, type Received } from './ledger.ts'
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

export interface DemoResult {
  readonly received: readonly Received[]
  /** Every sink got every event, and the forwarder ended well. */
  readonly complete: boolean
}

/**
 * Everything on this machine, over real sockets: the IMDS simulator, a broker for Event Hubs and Service Bus, a webhook receiver, a consumer of
 * each, a remote operator who approves through the queue, and the real forwarder as a process of its own. When the
 * machine of the story reboots, the forwarder is killed as a power cut would kill it, and started again once the machine is back.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { signal, say } = options
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'foreshock-demo-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))

  let reboot = Promise.withResolvers<string>()
  const ledger = createLedger(['stdout', 'webhook', 'event-hubs', 'service-bus'], say, Date.now)
  const got = (sink: string, event: CloudEvent): void => {
    ledger.got(sink, event)
    if (isRebootOfThisVm(event)) reboot.resolve(event.partitionkey)
  }

  const simulator = await startImdsSimulator({ scenario: await loadScenario(options.scenario), speed: options.speed, log: options.log })
  stack.defer(() => simulator.close())
  const broker = await startBroker({ entities: await loadEntities(), log: options.log })
  stack.defer(() => broker.close())
  const operator = await hireOperator(options.program, folder)
  const configFile = join(folder, 'config.json')
  const asking: Promise<boolean>[] = []
  const askOperator = async (event: CloudEvent): Promise<boolean> => {
    say(`operator  reads it from the topic, approves by a signed message to the queue ${controlQueue}`)
    try {
      say(`operator  gets the reply: ${await operator.approve(event, configFile)}`)
      return true
    } catch (error) {
      say(`operator  got no answer: ${error instanceof Error ? error.message : String(error)}`)
      return false
    }
  }
  const receiver = await startWebhookReceiver((event) => got('webhook', event))
  stack.defer(() => receiver.close())
  const connectionString = broker.connectionString()
  const hubReader = await readEventHub(connectionString, eventHub, (event) => got('event-hubs', event))
  stack.defer(() => hubReader.close())
  const topicReader = await readSubscription(connectionString, topic, 'all', (event) => {
    got('service-bus', event)
    if (wantsApproval(event)) asking.push(askOperator(event))
  })
  stack.defer(() => topicReader.close())
  const places = { endpoint: simulator.url, hook: receiver.url, connectionString, path: join(folder, 'state.db'), jwks: operator.jwksFile }
  await writeFile(configFile, JSON.stringify(configuration(places)))
  say(`IMDS simulator on ${simulator.url}, scenario ${options.scenario} at ${options.speed} times real speed`)
  say(`webhook receiver on ${receiver.url}`)
  say(`Event Hubs and Service Bus on 127.0.0.1:${broker.port}: the hub ${eventHub} and the topic ${topic}, each with a consumer`)

  const start = (): ForwarderProcess =>
    startForwarder({ program: options.program, configFile, bootId: randomUUID(), onEvent: (event) => got('stdout', event) })
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
    if ('status' in next) return { received: ledger.received(), complete: false }
    say(`power     the machine goes down: the forwarder is killed (SIGKILL)`)
    forwarder.signal('SIGKILL')
    await forwarder.ended
    await untilGone(simulator, next.eventId, signal)
    say(`power     the machine is back: the forwarder starts again, with its state file`)
    reboot = Promise.withResolvers<string>()
    forwarder = start()
  }

  const answered = await Promise.all(asking)
  await untilComplete(ledger, signal)
  if (options.keep && !signal.aborted) {
    say('the story is told; everything goes on running until you interrupt it')
    await aborted
  }
  forwarder.signal('SIGTERM')
  const status = await forwarder.ended
  say(`forwarder stopped, exit status ${status}`)
  await untilComplete(ledger, signal)
  const received = ledger.received()
  return { received, complete: status === 0 && !answered.includes(false) && ledger.complete() && received.every(({ ids }) => ids.size > 0) }
}

const eventHub = 'maintenance-hub'
const topic = 'maintenance'
const controlQueue = 'approvals'

/** A forwarder's configuration, as somebody would write it. */
function configuration(places: { endpoint: string; hook: string; connectionString: string; path: string; jwks: string }): unknown {
  const auth = { type: 'connection-string', connectionString: places.connectionString }
  return {
    imds: { endpoint: places.endpoint, pollIntervalMs: 250 },
    state: { path: places.path },
    heartbeat: { intervalSeconds: 0 },
    sinks: [
      { name: 'stdout', type: 'stdout' },
      { name: 'webhook', type: 'webhook', url: places.hook },
      { name: 'event-hubs', type: 'event-hubs', eventHub, auth },
      { name: 'service-bus', type: 'service-bus', topic, auth },
    ],
    control: { queue: controlQueue, auth, trust: { type: 'signed', jwks: places.jwks }, replies: { queue: 'replies' } },
    approvals: { events: 'own' },
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'warn' },
  }
}

/** What somebody asked for waits for NotBefore, unless it is approved. */
const wantsApproval = (event: CloudEvent): boolean =>
  event.type.endsWith('.scheduledevent.scheduled.v1') && event['azeventsource'] === 'User'

const isRebootOfThisVm = (event: CloudEvent): boolean =>
  event.type.endsWith('.scheduledevent.started.v1') && (event['azeventtype'] === 'Reboot' || event['azeventtype'] === 'Redeploy')

/** The machine is down until its event is over. */
async function untilGone(simulator: ImdsSimulator, eventId: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && simulator.moment().events.some(({ event }) => event.id.toLowerCase() === eventId)) await sleep(50)
}

/** What one sink has is on its way to the others; a few seconds are ample on loopback. */
async function untilComplete(ledger: Ledger, signal: AbortSignal): Promise<void> {
  await sleep(500)
  for (let waited = 0; waited < 5000 && !ledger.complete() && !signal.aborted; waited += 50) await sleep(50)
}
