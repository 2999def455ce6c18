import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Sink } from '../../sinks/contract.ts'
import { recordOf } from '../../sinks/log-analytics/record.ts'
import logAnalytics from '../../sinks/log-analytics.ts'
import { arrivedFromJson, type Arrived } from '../support/arrived.ts'
import { startAzureMonitor, testAuth, type AzureMonitor, type Reply } from '../support/azure-monitor.ts'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { sampleEvent } from '../support/sample-event.ts'
import { describeSinkConformance, openSink, unhurried } from '../support/sink-conformance.ts'

const trusted = getCACertificates('default')
const fixture = (name: string): Promise<string> => readFile(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')

beforeAll(async () => setDefaultCACertificates([...trusted, await fixture('ca.pem')]))
afterAll(() => setDefaultCACertificates(trusted))
afterEach(() => vi.unstubAllEnvs())

const ruleId = 'dcr-00000000000000000000000000000000'

/** The SDKs find the authority by the environment alone. */
async function start(): Promise<AzureMonitor> {
  const monitor = await startAzureMonitor()
  vi.stubEnv('AZURE_AUTHORITY_HOST', monitor.origin)
  return monitor
}

const options = (monitor: AzureMonitor): Record<string, unknown> => ({ endpoint: monitor.origin, ruleId, auth: testAuth })
const take = (monitor: AzureMonitor): void => monitor.reply({ does: 'take' })
const answer = (status: number, headers: Record<string, string> = {}): Reply => ({ does: 'answer', status, headers })

/** A row has no attributes of a CloudEvent beside its columns, so the event is put together from them again. */
function eventOfRow(row: Record<string, unknown>): Arrived {
  const number = z.object({ CloudEventId: z.string() }).parse(row).CloudEventId.slice(32, 36)
  const { attributes } = arrivedFromJson(sampleEvent(Number(number)))
  const { id, type, source, subject, time, ...rest } = attributes
  const named = { id, type, source, subject, time }
  const columns = z
    .object({
      CloudEventId: z.string(),
      CloudEventType: z.string(),
      CloudEventSource: z.string(),
      CloudEventSubject: z.string(),
      TimeGenerated: z.string(),
    })
    .parse(row)
  const read = {
    id: columns.CloudEventId,
    type: columns.CloudEventType,
    source: columns.CloudEventSource,
    subject: columns.CloudEventSubject,
    time: columns.TimeGenerated,
  }
  expect(Object.keys(read)).toEqual(Object.keys(named))
  return { attributes: { ...rest, ...read }, data: row['Data'] }
}

describeSinkConformance<AzureMonitor>({
  definition: logAnalytics,
  start,
  stop: (monitor) => monitor.stop(),
  options,
  arrived: (monitor) => monitor.rows.map(eventOfRow),
  down: { cause: (monitor) => monitor.stop(), heal: (monitor) => monitor.restart() },
  throttled: { cause: (monitor) => monitor.reply(answer(429, { 'retry-after': '2' })), heal: take },
  refused: { cause: (monitor) => monitor.reply(answer(403)), heal: take, refusal: 'refused' },
  hanging: { cause: (monitor) => monitor.reply({ does: 'hang' }), heal: take, reached: (monitor) => monitor.nextUpload() },
  checkFails: (monitor) => monitor.reply(answer(403)),
})

describe('rows for Log Analytics', () => {
  let monitor: AzureMonitor
  let sink: Sink

  beforeEach(async () => {
    monitor = await start()
    sink = await openSink(logAnalytics, options(monitor))
  })
  afterEach(async () => {
    await sink.close()
    await monitor.stop()
  })

  const deliver = (): ReturnType<Sink['deliver']> => sink.deliver(sampleEvent(1), unhurried())

  it('go to the stream of the rule, with a token for Azure Monitor and no retry of the SDK', async () => {
    await deliver()
    expect(monitor.uploads).toMatchObject([
      {
        path: `/dataCollectionRules/${ruleId}/streams/Custom-Foreshock`,
        version: '2023-01-01',
        authorization: 'Bearer token-of-the-stand-in',
        encoding: 'gzip',
        agent: expect.stringContaining('foreshock/test'),
      },
    ])
    expect(monitor.tokenRequests).toHaveLength(1)
    expect(Object.fromEntries(monitor.tokenRequests[0] ?? [])).toMatchObject({
      scope: expect.stringContaining('https://monitor.azure.com/.default'),
      client_id: testAuth.clientId,
    })
  })

  const answers: [string, Reply, object][] = [
    ['400', answer(400), { status: 'rejected', code: 'http_400' }],
    [
      '400 for an unknown stream',
      { does: 'answer', status: 400, code: 'InvalidStream' },
      { status: 'retry', because: 'refused', code: 'http_400' },
    ],
    ['401', answer(401), { status: 'retry', because: 'refused', code: 'http_401' }],
    [
      '403',
      answer(403),
      { status: 'retry', because: 'refused', code: 'http_403', detail: expect.stringContaining('Monitoring Metrics Publisher') },
    ],
    ['404', answer(404), { status: 'retry', because: 'refused', code: 'http_404', detail: expect.stringContaining('ruleId') }],
    ['408', answer(408), { status: 'retry', because: 'transient', code: 'http_408' }],
    ['413', answer(413), { status: 'rejected', code: 'http_413' }],
    ['415', answer(415), { status: 'rejected', code: 'http_415' }],
    ['429 with 7 s', answer(429, { 'retry-after': '7' }), { status: 'retry', because: 'throttled', code: 'http_429', retryAfterMs: 7_000 }],
    ['500', answer(500), { status: 'retry', because: 'transient', code: 'http_500' }],
    ['502', answer(502), { status: 'retry', because: 'transient', code: 'http_502' }],
    ['503', answer(503), { status: 'retry', because: 'throttled', code: 'http_503' }],
    ['504', answer(504), { status: 'retry', because: 'transient', code: 'http_504' }],
    ['a redirect', answer(307, { location: 'https://elsewhere.example/' }), { status: 'retry', because: 'refused', code: 'http_307' }],
    ['a cut connection', { does: 'cut' }, { status: 'retry', because: 'transient', code: 'network' }],
  ]
  it.each(answers)('that meet %s are asked about once, and told', async (_, reply, outcome) => {
    monitor.reply(reply)
    expect(await deliver()).toMatchObject(outcome)
    expect(monitor.uploads).toHaveLength(1)
  })

  it.each([
    [401, { status: 'retry', because: 'refused', code: 'no_token', detail: expect.stringContaining('AADSTS7000215') }],
    [503, { status: 'retry', because: 'transient', code: 'no_token' }],
  ])('are not sent without a token (%s), and the secret is not told', async (status, outcome) => {
    monitor.refuseTokens(status)
    const texts = [await deliver(), await sink.check(unhurried())]
    expect(texts).toMatchObject([outcome, { ok: false }])
    expect(JSON.stringify(texts)).not.toContain('hunter2')
    expect(monitor.uploads).toEqual([])
  })

  it('are sent as soon as there is a token', async () => {
    monitor.refuseTokens(401)
    await deliver()
    monitor.refuseTokens(undefined)
    expect(await deliver()).toEqual({ status: 'delivered' })
  })

  it('are refused where the certificate of the endpoint is for another name', async () => {
    const [key, cert] = await Promise.all([fixture('other.example.key.pem'), fixture('other.example.pem')])
    const other = await startHttpReceiver({ key, cert })
    const elsewhere = await openSink(logAnalytics, { ...options(monitor), endpoint: `https://localhost:${other.port}` })
    const refused = { status: 'retry', because: 'refused', code: 'tls', detail: expect.stringContaining('ALTNAME') }
    expect(await elsewhere.deliver(sampleEvent(1), unhurried())).toMatchObject(refused)
    expect(await elsewhere.check(unhurried())).toMatchObject({ ok: false })
    await elsewhere.close()
    await other.stop()
    expect(other.requests).toEqual([])
  })

  it.each([401, 403, 404, 500])('are proven by a check that sends none: %s says no', async (status) => {
    expect(await sink.check(unhurried())).toEqual({ ok: true, detail: expect.any(String) })
    expect(monitor.rows).toEqual([])
    monitor.reply(answer(status))
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, detail: expect.stringContaining(String(status)) })
  })
})

describe('the set-up in config/azure', () => {
  const columns = z.array(z.object({ name: z.string(), type: z.string() }))

  it('declares the columns of a row, in the rule and in the table alike', async () => {
    const rule = z
      .object({
        resources: z.array(
          z.object({
            properties: z.object({ streamDeclarations: z.object({ 'Custom-Foreshock': z.object({ columns }) }).optional() }),
          }),
        ),
      })
      .parse(await read('data-collection-rule.json'))
    const table = z
      .object({
        resources: z.array(z.object({ properties: z.object({ schema: z.object({ name: z.literal('Foreshock_CL'), columns }) }) })),
      })
      .parse(await read('table.json'))
    const names = Object.keys(recordOf(sampleEvent(1)))
    const declared = rule.resources[0]?.properties.streamDeclarations?.['Custom-Foreshock'].columns
    expect(declared?.map(({ name }) => name)).toEqual(names)
    // Of the two, one spells dateTime with a capital.
    expect(table.resources[0]?.properties.schema.columns.map(({ name, type }) => ({ name, type: type.toLowerCase() }))).toEqual(declared)
  })

  it('knows the types of the values', () => {
    const row = recordOf(sampleEvent(1))
    expect(row).toMatchObject({
      TimeGenerated: expect.any(String),
      SeverityNumber: 13,
      Resources: expect.any(Array),
      NotBefore: null,
      DurationInSeconds: -1,
    })
  })
})

describe('the options of log-analytics', () => {
  const good = { endpoint: 'https://fs-abcd.westeurope-1.ingest.monitor.azure.com', ruleId }

  it('need endpoint and rule; the identity of the VM and the stream of the set-up are the defaults', () => {
    expect(logAnalytics.options.parse(good)).toEqual({ ...good, stream: 'Custom-Foreshock', auth: { type: 'managed-identity' } })
  })

  it.each([
    ['plain http', { endpoint: 'http://fs.ingest.monitor.azure.com' }],
    ['a path', { endpoint: 'https://fs.ingest.monitor.azure.com/dataCollectionRules' }],
    ['the platform', { endpoint: 'https://169.254.169.254' }],
    ['the name of a rule', { ruleId: 'my-rule' }],
    ['the name of a table', { stream: 'Foreshock_CL' }],
    ['a token of its own', { auth: { type: 'bearer', token: 'x' } }],
  ])('refuse %s', (_, wrong) => {
    expect(logAnalytics.options.safeParse({ ...good, ...wrong }).success).toBe(false)
  })
})

const read = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(join(import.meta.dirname, '../../config/azure', name), 'utf8'))
