import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sink, SinkContext, SinkDefinition } from '../sinks/contract.ts'
import eventHubs from '../sinks/event-hubs.ts'
import { eventFormat } from '../sinks/formats/event-format.ts'
import serviceBus from '../sinks/service-bus.ts'
import { openDatabase } from '../src/outbox/database.ts'
import { createStore } from '../src/outbox/store.ts'
import { openBareSender } from './bare-sender.ts'
import { document, eventOf } from './event.ts'
import { startBenchBroker, wallClock, type BenchBroker } from './broker.ts'
import { startBenchImds } from './imds.ts'
import { percentile, type BenchRow } from './numbers.ts'
import { startBareBacklog, startBareForwarder, startForwarder, startIdleSenders, usage } from './program.ts'
import { startBenchReceiver } from './receiver.ts'

const rounds = 400
const backlogSize = 20_000
const concurrency = 16
const settleSeconds = 20
const warmUp = 500
const deliveries = 3_000
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const entities = ['hub', 'topic'] as const
type Entity = (typeof entities)[number]
const typeOf = { hub: 'event-hubs', topic: 'service-bus' } as const

function sinkTo(entity: Entity, { connectionString }: BenchBroker): Record<string, unknown> {
  const target = entity === 'hub' ? { eventHub: entity } : { topic: entity }
  return { name: entity, type: typeOf[entity], ...target, auth: { type: 'connection-string', connectionString } }
}

/**
 * From the moment IMDS has handed out a changed document to the moment the broker has accepted the event, with durable writes in between; in turn
 * with a send of the bare SDK, on a link that is open, of an event of the same size to the same broker, and with the least that polls, flushes the
 * change to the disk and sends.
 */
export async function amqpLatency(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const entity of entities) {
    const broker = await startBenchBroker()
    const folder = await mkdtemp(join(tmpdir(), 'foreshock-latency-'))
    const [imds, otherImds] = [await startBenchImds(), await startBenchImds()]
    // The `started` event of the forwarder itself is the first.
    let count = 1
    const started = broker.accepted(entity, count)
    const forwarder = await startForwarder({ imds: { endpoint: imds.url, pollIntervalMs: 100 }, sinks: [sinkTo(entity, broker)] })
    await started
    const polled = otherImds.nextPoll()
    const bareForwarder = startBareForwarder(entity, broker.connectionString, otherImds.url, join(folder, 'events.log'))
    await polled
    const bareSender = await openBareSender(entity, broker.connectionString)
    const nextAccepted = (): Promise<number> => broker.accepted(entity, (count += 1))
    const changeAt = async (from: typeof imds, round: number): Promise<number> => {
      const arrived = nextAccepted()
      const served = await from.serve(document(round))
      return (await arrived) - (performance.timeOrigin + served)
    }
    const samples = { foreshock: [] as number[], forwards: [] as number[], sends: [] as number[] }
    for (let round = 0; round < rounds; round += 1) {
      samples.foreshock.push(await changeAt(imds, round))
      samples.forwards.push(await changeAt(otherImds, round))
      const received = nextAccepted()
      const begun = wallClock()
      await bareSender.send(eventOf(round))
      samples.sends.push((await received) - begun)
    }
    await bareSender.close()
    await Promise.all([forwarder.stop(), bareForwarder.stop()])
    await rm(folder, { recursive: true })
    imds.close()
    otherImds.close()
    broker.stop()
    const against = (bare: readonly number[], what: string): void => {
      for (const [name, share] of [['p50', 0.5] as const, ['p99', 0.99] as const])
        rows.push({ what: `${what}, ${name}`, foreshock: percentile(samples.foreshock, share), bare: percentile(bare, share), unit: 'ms' })
    }
    against(samples.sends, `change to ${typeOf[entity]}`)
    against(samples.forwards, 'the same, bare polls and flushes too')
  }
  return rows
}

/** A delivery by the sink alone, from the call to the acknowledgement of the broker, in turn with a send of the bare SDK in the same process. */
export async function amqpDelivery(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const entity of entities) {
    const broker = await startBenchBroker()
    const sink = await openSink(entity, broker)
    const bareSender = await openBareSender(entity, broker.connectionString)
    const ours: number[] = []
    const bare: number[] = []
    const { signal } = new AbortController()
    for (let round = 0; round < warmUp + deliveries; round += 1) {
      const event = eventOf(round)
      const began = performance.now()
      await sink.deliver(event, { signal })
      const between = performance.now()
      await bareSender.send(event)
      if (round < warmUp) continue
      ours.push(between - began)
      bare.push(performance.now() - between)
    }
    await bareSender.close()
    await sink.close()
    broker.stop()
    for (const [name, share] of [['p50', 0.5] as const, ['p99', 0.99] as const]) {
      const what = `delivery to ${typeOf[entity]}, ${name}`
      rows.push({ what, foreshock: percentile(ours, share), bare: percentile(bare, share), unit: 'ms' })
    }
  }
  return rows
}

async function openSink(entity: Entity, broker: BenchBroker): Promise<Sink> {
  const context = {
    name: entity,
    log: silent,
    now: Date.now,
    agent: 'foreshock/bench',
    format: eventFormat('cloudevents', () => null),
    env: {},
    maxAgeSeconds: 3_600,
  }
  const { definition, options } =
    entity === 'hub' ? { definition: eventHubs, options: { eventHub: entity } } : { definition: serviceBus, options: { topic: entity } }
  const auth = { type: 'connection-string', connectionString: broker.connectionString }
  const sink: Sink = await open(definition, { ...options, auth }, context)
  await sink.check({ signal: new AbortController().signal })
  return sink
}

const open = (definition: SinkDefinition, options: object, context: SinkContext): Promise<Sink> =>
  definition.open(definition.options.parse(options), context)

/** How fast a backlog leaves the outbox, up to the moment in which the broker has accepted the last event, against the bare SDK sending as many events with the same concurrency. */
export async function amqpBacklog(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const entity of entities) {
    const broker = await startBenchBroker()
    const folder = await mkdtemp(join(tmpdir(), 'foreshock-backlog-'))
    const path = join(folder, 'state.db')
    fillOutbox(path, entity)
    const imds = await startBenchImds()
    const first = broker.accepted(entity, 1)
    const last = broker.accepted(entity, backlogSize)
    const forwarder = await startForwarder({ imds: { endpoint: imds.url }, state: { path }, sinks: [sinkTo(entity, broker)] })
    const drainedMs = -(await first) + (await last)
    await forwarder.stop()
    await rm(folder, { recursive: true })
    imds.close()
    broker.stop()

    // Its own process and its own broker too: the code of none is warm, and no message of the forwarder is counted.
    const otherBroker = await startBenchBroker()
    const firstBare = otherBroker.accepted(entity, 1)
    const lastBare = otherBroker.accepted(entity, backlogSize)
    const bare = startBareBacklog(entity, otherBroker.connectionString, { count: backlogSize, concurrency })
    const bareMs = -(await firstBare) + (await lastBare)
    await bare.stop()
    otherBroker.stop()
    const rate = (milliseconds: number): number => backlogSize / (milliseconds / 1000)
    rows.push({ what: `backlog to ${typeOf[entity]}`, foreshock: rate(drainedMs), bare: rate(bareMs), unit: '/s' })
  }
  return rows
}

/** Resident memory of the whole process with each sink open, and with all three, against a process that only keeps the same SDKs connected. */
export async function amqpMemory(): Promise<BenchRow[]> {
  const broker = await startBenchBroker()
  const imds = await startBenchImds()
  const receiver = await startBenchReceiver()
  const webhook = { name: 'hook', type: 'webhook', url: receiver.url }
  const measured: { what: string; sinks: Record<string, unknown>[]; connected: Entity[] }[] = [
    { what: 'memory, event-hubs', sinks: [sinkTo('hub', broker)], connected: ['hub'] },
    { what: 'memory, service-bus', sinks: [sinkTo('topic', broker)], connected: ['topic'] },
    { what: 'memory, both and a webhook', sinks: [sinkTo('hub', broker), sinkTo('topic', broker), webhook], connected: ['hub', 'topic'] },
  ]
  const rows: BenchRow[] = []
  for (const { what, sinks, connected } of measured) {
    const forwarder = await startForwarder({ imds: { endpoint: imds.url }, sinks })
    const idle = startIdleSenders(broker.connectionString, connected)
    await sleep(settleSeconds * 1000)
    const [ours, bare] = [await usage(forwarder.pid), await usage(idle.pid)]
    await Promise.all([forwarder.stop(), idle.stop()])
    rows.push({ what, foreshock: ours.megabytes, bare: bare.megabytes, unit: 'MB' })
  }
  receiver.close()
  imds.close()
  broker.stop()
  return rows
}

/** Events of as many ids, so that as many lanes may be under way as the concurrency allows. */
function fillOutbox(path: string, sink: string): void {
  const database = openDatabase(path, { now: Date.now, log: silent })
  const targets = [{ sink, expiresAt: Date.now() + 3_600_000 }]
  const events = Array.from({ length: backlogSize }, (_, number) => ({ event: eventOf(number), priority: 0 as const, targets }))
  createStore(database, { now: Date.now }).commit({ events })
  database.close()
}
