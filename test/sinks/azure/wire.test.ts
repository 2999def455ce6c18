import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { attributesOf } from '../../../sinks/cloud-event.ts'
import type { SinkDefinition } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import { eventFormat } from '../../../sinks/formats/event-format.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import type { ReceivedMessage } from '../../../src/simulator/broker/journal.ts'
import { sectionCode, splitSections } from '../../../src/simulator/broker/sections.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { openSink, testContext, unhurried } from '../../support/sink-conformance.ts'
import { dataBytes, optionsFor, startNamespace } from './namespace.ts'

type Entity = 'hub' | 'queue' | 'topic' | 'sessions'
const sinks = { hub: eventHubs, queue: serviceBus, topic: serviceBus, sessions: serviceBus } as const
const event = sampleEvent(1)

let broker: Broker
beforeEach(async () => {
  broker = await startNamespace()
})
afterEach(() => broker.close())

/** The one message that an event became. */
async function sent(entity: Entity, more: object = {}): Promise<ReceivedMessage> {
  const definition: SinkDefinition = sinks[entity]
  const sink = await openSink(definition, optionsFor(broker, entity, more))
  onTestFinished(() => sink.close())
  expect(await sink.deliver(event, unhurried())).toEqual({ status: 'delivered' })
  const [message] = broker.received(entity)
  if (message === undefined) throw new TypeError('nothing arrived')
  return message
}

/** AMQP type codes of the values in the application properties, as they stood on the wire: key and value in turn. AMQP 1.0 part 1.6. */
function typeCodes({ raw }: ReceivedMessage): number[] {
  const section = splitSections(raw).find(({ code }) => code === sectionCode.applicationProperties)
  if (section === undefined) return []
  const { value } = section
  const wide = value[0] === 0xd1
  const codes: number[] = []
  for (let at = wide ? 9 : 3; at < value.length;) {
    const code = value[at] ?? 0
    codes.push(code)
    if (code === 0xa1) at += 2 + (value[at + 1] ?? 0)
    else if (code === 0xb1) at += 5 + value.readUInt32BE(at + 1)
    else throw new TypeError(`a property of type 0x${code.toString(16)}`)
  }
  return codes
}

const entities = ['hub', 'queue', 'topic'] as const

describe.each(entities)('a message to the %s', (entity) => {
  it('has the whole event as bytes in its data section, from the first brace on, in structured mode', async () => {
    const message = await sent(entity)
    expect(dataBytes(message)[0]).toBe(0x7b)
    expect(JSON.parse(dataBytes(message).toString('utf8'))).toEqual(event)
    expect(message.message.content_type).toBe('application/cloudevents+json; charset=utf-8')
  })

  it('has the data alone in binary mode', async () => {
    const message = await sent(entity, { mode: 'binary' })
    expect(JSON.parse(dataBytes(message).toString('utf8'))).toEqual(event.data)
    expect(message.message.content_type).toBe('application/json')
  })

  it.each(['structured', 'binary'])('has every attribute as a string property cloudEvents_{name} in %s mode', async (mode) => {
    const message = await sent(entity, { mode })
    const expected = attributesOf(event)
      .filter(([name]) => name !== 'datacontenttype')
      .map(([name, value]) => [`cloudEvents_${name}`, value])
    expect(message.message.application_properties).toEqual(Object.fromEntries(expected))
    // Nothing but str8 and str32: what a JavaScript number becomes is forbidden by the binding.
    expect(new Set(typeCodes(message)).difference(new Set([0xa1, 0xb1]))).toEqual(new Set())
    expect(typeCodes(message)).toHaveLength(2 * expected.length)
  })

  it('has the colon in the names of its properties where the options say so, and no other', async () => {
    const { message } = await sent(entity, { attributePrefix: 'cloudEvents:' })
    const names = Object.keys(message.application_properties ?? {})
    expect(names).toContain('cloudEvents:id')
    expect(names.filter((name) => !name.startsWith('cloudEvents:'))).toEqual([])
  })

  it('is known by the id of the event and kept in order by its partition key', async () => {
    const { message } = await sent(entity)
    expect(message.message_id).toBe(event.id)
    expect(message.message_annotations).toMatchObject({ 'x-opt-partition-key': event.partitionkey })
  })
})

describe('a message to Service Bus', () => {
  it('carries type and event id where filters look first', async () => {
    const { message } = await sent('topic')
    expect(message).toMatchObject({ subject: event.type, correlation_id: event.partitionkey })
  })

  it('lives as long as the event would have in the outbox', async () => {
    const ageMs = 1_000_000
    const now = Date.parse(event.time) + ageMs
    const sink = await serviceBus.open(serviceBus.options.parse(optionsFor(broker, 'queue')), { ...testContext, now: () => now })
    onTestFinished(() => sink.close())
    await sink.deliver(event, unhurried())
    expect(broker.received('queue')[0]?.message.ttl).toBe(testContext.maxAgeSeconds * 1000 - ageMs)
  })

  it('that was replayed after its time gets the whole of it once more', async () => {
    const now = Date.parse(event.time) + 10 * testContext.maxAgeSeconds * 1000
    const sink = await serviceBus.open(serviceBus.options.parse(optionsFor(broker, 'queue')), { ...testContext, now: () => now })
    onTestFinished(() => sink.close())
    await sink.deliver(event, unhurried())
    expect(broker.received('queue')[0]?.message.ttl).toBe(testContext.maxAgeSeconds * 1000)
  })

  it('is in the session of its event where that is asked for', async () => {
    const { message } = await sent('sessions', { session: 'event' })
    expect(message.group_id).toBe(event.partitionkey)
  })
})

describe('another format', () => {
  it('is the whole body, without the properties of a CloudEvent', async () => {
    const format = eventFormat('ecs', () => null)
    const sink = await eventHubs.open(eventHubs.options.parse(optionsFor(broker, 'hub')), { ...testContext, format })
    onTestFinished(() => sink.close())
    await sink.deliver(event, unhurried())
    const [message] = broker.received('hub')
    expect(message?.message.content_type).toBe('application/json')
    expect(message?.message.application_properties ?? {}).toEqual({})
    expect(message === undefined ? '' : dataBytes(message).toString('utf8')).toBe(format.write(event))
  })
})

/** What becomes of an event once the link is open and `cause` has happened. */
async function outcomeOf(entity: Entity, cause: () => void, more: object = {}): Promise<unknown> {
  const sink = await openSink(sinks[entity], optionsFor(broker, entity, more))
  onTestFinished(() => sink.close())
  await sink.check(unhurried())
  cause()
  return await sink.deliver(event, unhurried())
}

describe('what a broker refuses', () => {
  it.each(entities)('as too large is a dead letter (%s)', async (entity) => {
    const problem = { condition: 'amqp:link:message-size-exceeded', description: 'The received message exceeds the limit.' }
    const outcome = await outcomeOf(entity, () => void broker.faults.rejectSends(problem))
    expect(outcome).toMatchObject({ status: 'rejected', code: 'too_large' })
  })

  it.each(entities)('for want of a right waits, and says what to do (%s)', async (entity) => {
    const problem = { condition: 'amqp:unauthorized-access', description: "'Send' claim(s) are required." }
    const outcome = await outcomeOf(entity, () => void broker.faults.rejectSends(problem))
    expect(outcome).toMatchObject({
      status: 'retry',
      because: 'refused',
      code: 'unauthorized',
      detail: expect.stringContaining('sender role'),
    })
  })

  it.each(entities)('for its quota waits (%s)', async (entity) => {
    const outcome = await outcomeOf(entity, () => void broker.faults.resourceLimitExceeded())
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: 'quota_exceeded' })
  })

  it.each(entities)('for an internal failure is tried again (%s)', async (entity) => {
    const outcome = await outcomeOf(entity, () => void broker.faults.rejectSends({ condition: 'amqp:internal-error', description: 'oops' }))
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient', code: 'broker_failed' })
  })

  it.each(entities)('with a word that nobody knows is tried again (%s)', async (entity) => {
    const outcome = await outcomeOf(
      entity,
      () => void broker.faults.rejectSends({ condition: 'com.example:new', description: 'what is this' }),
    )
    expect(outcome).toMatchObject({ status: 'retry', because: 'transient' })
  })

  it('because the entity is not there waits, with its name', async () => {
    const sink = await openSink(serviceBus, { ...optionsFor(broker, 'queue'), queue: 'nowhere' })
    onTestFinished(() => sink.close())
    const outcome = await sink.deliver(event, unhurried())
    expect(outcome).toMatchObject({
      status: 'retry',
      because: 'refused',
      code: 'entity_not_found',
      detail: expect.stringContaining('nowhere'),
    })
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, cure: expect.stringContaining('create') })
  })

  it('because a session is wanted waits, and names the option', async () => {
    const outcome = await outcomeOf('sessions', () => {})
    expect(outcome).toMatchObject({
      status: 'retry',
      because: 'refused',
      code: 'not_allowed',
      detail: expect.stringContaining('session: event'),
    })
  })

  it('as a wrong key waits', async () => {
    const keyed = await startNamespace({ entities: { keys: [{ name: 'root', key: 'c2VjcmV0' }], queues: [{ name: 'queue' }] } })
    onTestFinished(() => keyed.close())
    const connectionString = keyed.connectionString().replace('c2VjcmV0', 'd3Jvbmc=')
    const sink = await openSink(serviceBus, { queue: 'queue', auth: { type: 'connection-string', connectionString } })
    onTestFinished(() => sink.close())
    const outcome = await sink.deliver(event, unhurried())
    expect(outcome).toMatchObject({ status: 'retry', because: 'refused', code: 'unauthorized' })
    expect(JSON.stringify(outcome)).not.toContain('d3Jvbmc=')
  })
})
