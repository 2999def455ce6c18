import { readFile } from 'node:fs/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { ReceivedMessage } from '../../../src/simulator/broker/journal.ts'
import { startBroker, type Broker, type BrokerOptions } from '../../../src/simulator/broker/broker.ts'
import { splitSections, sectionCode, dataOf } from '../../../src/simulator/broker/sections.ts'
import { arrivedFromJson, type Arrived } from '../../support/arrived.ts'

const entities = {
  eventHubs: [{ name: 'hub', partitions: 2 }],
  queues: [{ name: 'queue' }, { name: 'sessions', requiresSession: true }],
  topics: [{ name: 'topic', duplicateDetectionSeconds: 600, subscriptions: [{ name: 'all' }] }],
} satisfies BrokerOptions['entities']

export const startNamespace = (options: Partial<BrokerOptions> = {}): Promise<Broker> => startBroker({ entities, ...options })

/** The options of a sink that sends to `entity` of the broker by its connection string. */
export function optionsFor(broker: Broker, entity: 'hub' | 'queue' | 'topic' | 'sessions', more: object = {}): Record<string, unknown> {
  const option = entity === 'hub' ? 'eventHub' : entity === 'topic' ? 'topic' : 'queue'
  return { [option]: entity, auth: { type: 'connection-string', connectionString: broker.connectionString() }, ...more }
}

const fixture = (name: string): Promise<string> => readFile(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')

/** A certificate of the test authority for the broker, trusted until `distrust`: sinks take no authority but the default ones. */
export async function trustedTls(name: 'localhost' | 'other.example' = 'localhost'): Promise<{
  readonly tls: { readonly key: string; readonly cert: string }
  readonly distrust: () => void
}> {
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, await fixture('ca.pem')])
  return {
    tls: { key: await fixture(`${name}.key.pem`), cert: await fixture(`${name}.pem`) },
    distrust: () => setDefaultCACertificates(trusted),
  }
}

/** The bytes of the data section, as they stood on the wire. */
export function dataBytes({ raw }: ReceivedMessage): Buffer {
  const data = splitSections(raw).find((section) => section.code === sectionCode.data)
  if (data === undefined) throw new TypeError('the message has no data section')
  return dataOf(data)
}

/** What arrived at an entity, read as the AMQP binding has it. */
export function arrivedAt(broker: Broker, entity: string): Arrived[] {
  return broker.received(entity).map((received) => {
    const { content_type: contentType, application_properties: properties = {} } = received.message
    const json: unknown = JSON.parse(dataBytes(received).toString('utf8'))
    if (String(contentType).startsWith('application/cloudevents+json')) return arrivedFromJson(json)
    const attributes = Object.entries(properties).map(([name, value]) => [name.replace(/^cloudEvents_/, ''), String(value)])
    return { attributes: { ...Object.fromEntries(attributes), datacontenttype: String(contentType) }, data: json }
  })
}
