import { describe, expect, it } from 'vitest'
import type { SinkDefinition } from '../../../sinks/contract.ts'
import eventHubs from '../../../sinks/event-hubs.ts'
import serviceBus from '../../../sinks/service-bus.ts'
import { openSink, unhurried } from '../../support/sink-conformance.ts'
import { sampleEvent } from '../../support/sample-event.ts'

const host = 'contoso.servicebus.windows.net'
const key = `Endpoint=sb://${host}/;SharedAccessKeyName=send;SharedAccessKey=c2VjcmV0PQ==`
const signature = `Endpoint=sb://${host}/;SharedAccessSignature=SharedAccessSignature sr=sb%3A%2F%2F${host}&sig=c2VjcmV0&se=1900000000&skn=send`
const withString = (connectionString: string, more: object = {}): object => ({
  auth: { type: 'connection-string', connectionString },
  ...more,
})
const withToken = (more: object): object => ({ auth: { type: 'managed-identity' }, ...more })

/** Path and message of each mistake. */
function mistakes(definition: SinkDefinition, options: object): string[] {
  return definition.options.safeParse(options).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []
}

describe('the options of event-hubs', () => {
  it.each([
    ['a managed identity', withToken({ namespace: host, eventHub: 'maintenance' })],
    [
      'a user-assigned one',
      { namespace: host, eventHub: 'm', auth: { type: 'managed-identity', clientId: '11111111-2222-4333-8444-555555555555' } },
    ],
    ['a workload identity', { namespace: host, eventHub: 'm', auth: { type: 'workload-identity' } }],
    [
      'a client secret in a file',
      {
        namespace: host,
        eventHub: 'm',
        auth: {
          type: 'client-secret',
          tenantId: 'contoso.onmicrosoft.com',
          clientId: '11111111-2222-4333-8444-555555555555',
          clientSecret: { file: '/run/secrets/client' },
        },
      },
    ],
    ['a connection string', withString(key, { eventHub: 'm' })],
    ['one with EntityPath', withString(`${key};EntityPath=m`)],
    ['one with EntityPath and the same name', withString(`${key};EntityPath=m`, { eventHub: 'm', namespace: host })],
    ['one with a shared access signature', withString(signature, { eventHub: 'm' })],
    ['one in a file', { auth: { type: 'connection-string', connectionString: { file: '/run/secrets/hub' } } }],
    [
      'everything',
      withToken({ namespace: host, eventHub: 'm', mode: 'binary', transport: 'websockets', customEndpoint: 'sb://10.0.0.4:5671' }),
    ],
  ])('take %s', (_, options) => {
    expect(mistakes(eventHubs, options)).toEqual([])
  })

  it.each([
    ['no namespace with a token', withToken({ eventHub: 'm' }), 'namespace: missing: auth.type managed-identity needs it'],
    [
      'a namespace cut short',
      withToken({ eventHub: 'm', namespace: 'contoso' }),
      'namespace: expected the full host name: contoso.servicebus',
    ],
    [
      'a namespace as a URL',
      withToken({ eventHub: 'm', namespace: `sb://${host}/` }),
      'namespace: expected the host name of the namespace alone',
    ],
    ['no event hub', withToken({ namespace: host }), 'eventHub: missing: name the eventHub'],
    ['no event hub anywhere', withString(key), 'eventHub: missing: name the eventHub, or take a connection string with EntityPath'],
    ['two event hubs', withString(`${key};EntityPath=a`, { eventHub: 'b' }), 'eventHub: is not the EntityPath of the connection string'],
    [
      'two namespaces',
      withString(key, { eventHub: 'm', namespace: 'other.servicebus.windows.net' }),
      'namespace: is not the host in the Endpoint',
    ],
    [
      'what is no connection string',
      withString('hunter2', { eventHub: 'm' }),
      'auth.connectionString: expected a connection string that begins',
    ],
    [
      'one without a key',
      withString(`Endpoint=sb://${host}/`, { eventHub: 'm' }),
      'auth.connectionString: expected SharedAccessKeyName and',
    ],
    [
      'a bare signature',
      withString(`Endpoint=sb://${host}/;SharedAccessSignature=sr=x`, { eventHub: 'm' }),
      'expected SharedAccessSignature to begin',
    ],
    [
      'a custom endpoint without sb://',
      withToken({ namespace: host, eventHub: 'm', customEndpoint: 'https://x' }),
      'customEndpoint: expected sb://host',
    ],
    [
      'another kind of auth',
      { namespace: host, eventHub: 'm', auth: { type: 'password' } },
      "auth.type: Invalid discriminator value. Expected 'managed-identity'",
    ],
    ['another mode', withToken({ namespace: host, eventHub: 'm', mode: 'batch' }), 'mode: '],
  ])('refuse %s', (_, options, expected) => {
    expect(mistakes(eventHubs, options)).toEqual([expect.stringContaining(expected)])
  })

  it('never show a part of a connection string', () => {
    const told = mistakes(eventHubs, withString(`${key};EntityPath=a`, { eventHub: 'b', namespace: 'other.example' })).join()
    expect(told).not.toContain('c2VjcmV0')
    expect(told).not.toBe('')
  })
})

describe('the options of service-bus', () => {
  it.each([
    ['a queue', withToken({ namespace: host, queue: 'q' })],
    ['a topic', withToken({ namespace: host, topic: 'dept/maintenance' })],
    ['a topic by connection string', withString(key, { topic: 'maintenance' })],
    ['the EntityPath of a connection string', withString(`${key};EntityPath=q`)],
    ['a session per event', withString(key, { queue: 'q', session: 'event' })],
  ])('take %s', (_, options) => {
    expect(mistakes(serviceBus, options)).toEqual([])
  })

  it.each([
    [
      'both a queue and a topic',
      withToken({ namespace: host, queue: 'q', topic: 't' }),
      'topic: expected one of queue and topic, got both',
    ],
    ['neither', withToken({ namespace: host }), 'queue: missing: name the queue or topic'],
    ['another topic than the EntityPath', withString(`${key};EntityPath=q`, { topic: 't' }), 'topic: is not the EntityPath'],
    ['another session', withToken({ namespace: host, queue: 'q', session: 'vm' }), 'session: '],
  ])('refuse %s', (_, options, expected) => {
    expect(mistakes(serviceBus, options)).toEqual([expect.stringContaining(expected)])
  })
})

describe('a connection string in a file', () => {
  it.each([
    ['that is not there', { file: '/nonexistent/secret' }, 'cannot be read'],
    ['that holds something else', { file: new URL(import.meta.url).pathname }, 'expected a connection string that begins'],
  ])('%s is told by each delivery and by check, not by open', async (_, connectionString, expected) => {
    const sink = await openSink(serviceBus, { queue: 'q', auth: { type: 'connection-string', connectionString } })
    const refused = { status: 'retry', because: 'refused', code: 'sink_unusable', detail: expect.stringContaining(expected) }
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject(refused)
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, detail: expect.stringContaining(expected) })
    await sink.close()
  })
})
