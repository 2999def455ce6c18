import { describe, expect, it } from 'vitest'
import type { FormatName } from '../../../sinks/contract.ts'
import { eventFormat } from '../../../sinks/formats/event-format.ts'
import { everyEvent } from '../../events/every-event.ts'
import { identity } from '../../events/sample-transition.ts'
import { arrivedFromHttp, arrivedFromJson } from '../../support/arrived.ts'
import { sampleEvent } from '../../support/sample-event.ts'

const names: readonly FormatName[] = ['cloudevents', 'azure-resource-log', 'ecs', 'splunk-hec']
const written = (name: FormatName, event = sampleEvent(1), self: typeof identity | null = identity): unknown =>
  JSON.parse(eventFormat(name, () => self).write(event))

describe.each(names)('the format %s', (name) => {
  it.each(everyEvent())('of an event that is %s is as agreed (`vitest run THIS_FILE --update` writes it)', async (kind, event) => {
    const text = eventFormat(name, () => identity).write(event)
    expect(text).not.toContain('\n')
    await expect(`${JSON.stringify(JSON.parse(text), null, 2)}\n`).toMatchFileSnapshot(`../../golden/${name}/${kind}.json`)
  })

  it('is the same text on every retry, and leaves the event alone', () => {
    const format = eventFormat(name, () => identity)
    // Frozen to the last leaf.
    const event = sampleEvent(1)
    expect(format.write(event)).toBe(format.write(event))
  })

  it('keeps what encoders like to break', () => {
    expect(JSON.stringify(written(name))).toContain('Größe € 😀 \\"q\\" 100%')
  })

  it('needs to know nothing of this machine', () => {
    for (const [, event] of everyEvent()) expect(written(name, event, null)).toEqual(expect.any(Object))
  })
})

describe('the format cloudevents', () => {
  it.each(everyEvent())('of an event that is %s is read by the reference SDK, and valid by the schema of the specification', (_, event) => {
    const { contentType, write } = eventFormat('cloudevents', () => null)
    expect(arrivedFromHttp({ 'content-type': contentType }, write(event))).toEqual(arrivedFromJson(event))
  })
})

describe('the format azure-resource-log', () => {
  it('has one key at the top, one record, and a resource in upper case', () => {
    const log = written('azure-resource-log')
    expect(Object.keys(Object(log))).toEqual(['records'])
    expect(log).toMatchObject({
      records: [{ resourceId: sampleEvent(1).source.toUpperCase(), category: 'ScheduledEvents', properties: { ...sampleEvent(1).data } }],
    })
  })

  it.each(everyEvent().filter(([, event]) => event['azeventtype'] !== undefined))(
    'names the operation of an event that is %s',
    (_, event) => {
      const status = event.type.split('.').at(-2)
      expect(written('azure-resource-log', event)).toMatchObject({
        records: [
          {
            operationName: `ScheduledEvents/${JSON.stringify(event.data['eventType']).slice(1, -1)}/${status}`,
            correlationId: event.data['eventId'],
          },
        ],
      })
    },
  )
})

const nested = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

describe('the format ecs', () => {
  it.each(everyEvent())('is flat for an event that is %s', (_, event) => {
    expect(Object.values(Object(written('ecs', event))).some(nested)).toBe(false)
  })

  it.each([
    ['scheduled', 'info'],
    ['rescheduled', 'change'],
    ['started', 'start'],
    ['completed', 'end'],
    ['cancelled', 'end'],
    ['vanished', 'end'],
  ])('says of an event that is %s: %s', (kind, type) => {
    const event = new Map(everyEvent()).get(kind)
    expect(written('ecs', event)).toMatchObject({ 'event.kind': 'event', 'event.category': ['host'], 'event.type': [type] })
  })

  it('knows the machine that reports from the event, else from itself, else leaves it out', () => {
    const [ofGroup, ofVm] = [new Map(everyEvent()).get('scheduled'), new Map(everyEvent()).get('scheduled-of-vm')]
    expect(written('ecs', ofVm, null)).toMatchObject({
      'host.name': 'FrontEnd_IN_0',
      'cloud.region': 'westeurope',
      'cloud.availability_zone': '1',
    })
    expect(written('ecs', ofGroup, identity)).toMatchObject({
      'host.name': 'web_0',
      'cloud.instance.id': identity.vmId,
      'cloud.region': 'westeurope',
    })
    expect(written('ecs', ofGroup, null)).toMatchObject({
      'host.name': 'Web_0',
      'cloud.account.id': '00000000-0000-0000-0000-000000000000',
    })
    expect(written('ecs', ofGroup, null)).not.toHaveProperty('cloud.region')
  })
})

describe('the format splunk-hec', () => {
  it('has the time in seconds, with milliseconds, and the event inside', () => {
    expect(written('splunk-hec')).toEqual({
      time: 1_772_366_400.25,
      host: 'web_0',
      source: sampleEvent(1).source,
      sourcetype: 'foreshock:cloudevent',
      event: { ...sampleEvent(1) },
    })
  })
})
