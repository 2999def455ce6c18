import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiVersions } from '../../../src/imds/api-versions.ts'
import { loadScenario } from '../../../src/simulator/imds/scenario-file.ts'
import { startImdsSimulator } from '../../../src/simulator/imds/server.ts'
import { afterwards, approve, ask, epoch, events, eventsPath, play, scenarioOf, silent } from './play.ts'

const captured = (file: string): Promise<string> => readFile(join(import.meta.dirname, '../../documents', file), 'utf8')

const reboot = { id: 'ABC', type: 'Reboot', resources: ['web_0'], description: 'Why.', noticeSeconds: 900 }

describe('reading the events', () => {
  it('gives the documents of the reference life cycle, field by field and in their order', async () => {
    const description = 'Virtual machine is being paused because of a memory-preserving Live Migration operation.'
    const id = 'C7061BAC-AFDC-4513-B24B-AA5F13A16123'
    const freeze = { id, type: 'Freeze', resources: ['WestNO_0', 'WestNO_1'], description, durationSeconds: 5, appearsAtSeconds: 60 }
    const simulator = await play(scenarioOf({ events: [freeze] }), { now: () => Date.UTC(2022, 3, 11, 22, 10, 58) })
    const expected: { document: unknown }[] = JSON.parse(await captured('d01-ms-sequence-freeze.json'))
    for (const [index, seconds] of [0, 60, 960, 1260].entries()) {
      simulator.to(seconds)
      const reply = await ask(simulator.url + eventsPath())
      expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
      expect(reply.text).toBe(JSON.stringify(expected[index]?.document))
    }
  })

  it('writes in each API version what that version had', async () => {
    const preempt = { type: 'Preempt', resources: ['web_0'] }
    const terminate = { type: 'Terminate', resources: ['web_0'] }
    const { url } = await play(scenarioOf({ events: [{ ...reboot, extra: { Later: [1] } }, preempt, terminate] }))
    const seen: Record<string, unknown> = {}
    for (const version of apiVersions) {
      const { Events }: { Events: Record<string, unknown>[] } = JSON.parse((await ask(url + eventsPath(version))).text)
      const base = ['EventId', 'EventStatus', 'EventType', 'ResourceType', 'Resources', 'NotBefore']
      const more = Object.keys(Events[0] ?? {}).filter((key) => !base.includes(key))
      expect(Object.keys(Events[0] ?? {}).slice(0, 6)).toEqual(base)
      seen[version] = [Events.map((event) => event['EventType']).join(' '), String(Events[0]?.['Resources']), more.join(' ')]
    }
    expect(seen).toEqual({
      '2017-03-01': ['Reboot', '_web_0', 'Later'],
      '2017-08-01': ['Reboot', 'web_0', 'Later'],
      '2017-11-01': ['Reboot Preempt', 'web_0', 'Later'],
      '2019-01-01': ['Reboot Preempt Terminate', 'web_0', 'Later'],
      '2019-04-01': ['Reboot Preempt Terminate', 'web_0', 'Description Later'],
      '2019-08-01': ['Reboot Preempt Terminate', 'web_0', 'Description EventSource Later'],
      '2020-07-01': ['Reboot Preempt Terminate', 'web_0', 'Description EventSource DurationInSeconds Later'],
    })
  })

  it('writes NotBefore as the real time at which it starts, whatever the speed', async () => {
    const simulator = await play(scenarioOf({ events: [{ ...reboot, appearsAtSeconds: 60 }] }), { speed: 60 })
    simulator.to(1)
    const notBefore = new Date(epoch + 16_000).toUTCString()
    expect(await events(simulator.url)).toMatchObject({
      DocumentIncarnation: 2,
      Events: [{ EventStatus: 'Scheduled', NotBefore: notBefore }],
    })
    simulator.to(15.99)
    expect(await events(simulator.url)).toMatchObject({ Events: [{ EventStatus: 'Scheduled', NotBefore: notBefore }] })
    simulator.to(16)
    expect(await events(simulator.url)).toMatchObject({ DocumentIncarnation: 3, Events: [{ EventStatus: 'Started', NotBefore: '' }] })
  })

  it('lets extra fields of a scenario replace its own, so that odd documents can be staged', async () => {
    const { url } = await play(scenarioOf({ events: [{ ...reboot, extra: { NotBefore: null, EventStatus: 'Acknowledged' } }] }))
    expect(await events(url)).toMatchObject({ Events: [{ EventId: 'ABC', NotBefore: null, EventStatus: 'Acknowledged' }] })
  })

  it('gives every machine of the scenario a port and the same document', async () => {
    const simulator = await play(await loadScenario('scale-in'))
    simulator.to(60)
    expect(new Set(simulator.urls).size).toBe(3)
    const documents = await Promise.all(simulator.urls.map((url) => events(url)))
    expect(documents[0]).toMatchObject({ Events: [{ Resources: ['batch_1'] }, { Resources: ['batch_4'] }, { Resources: ['batch_7'] }] })
    expect(documents[1]).toEqual(documents[0])
    expect(simulator.requests.map(({ vm }) => vm).toSorted()).toEqual(['batch_1', 'batch_4', 'batch_7'])
    expect(simulator.requests[0]).toEqual({ vm: expect.any(String), method: 'GET', path: eventsPath(), at: epoch + 60_000 })
  })

  it('answers a recording frame by frame, the last one for ever', async () => {
    const documents = [
      { atSeconds: 2, document: { Events: [], DocumentIncarnation: 7 } },
      { atSeconds: 5, status: 503, headers: { 'Retry-After': '3', 'Content-Type': 'text/plain' }, body: 'no\n' },
      { atSeconds: 8, bodyBase64: '/wA=' },
      { atSeconds: 9, noAnswer: 'reset' },
    ]
    const simulator = await play(scenarioOf({ documents }))
    const url = simulator.url + eventsPath()
    expect((await ask(url)).text).toBe('{"Events":[],"DocumentIncarnation":7}')
    simulator.to(5)
    expect(await ask(url)).toMatchObject({ status: 503, text: 'no\n', headers: { 'retry-after': '3', 'content-type': 'text/plain' } })
    simulator.to(8)
    expect((await ask(url)).bytes).toEqual(Buffer.from([0xff, 0]))
    simulator.to(1000)
    await expect(ask(url)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('answers a document set by hand until the scenario gets its place back', async () => {
    const simulator = await play(scenarioOf({ events: [reboot] }))
    simulator.setDocument({ DocumentIncarnation: 9, Events: [{ EventId: 'by-hand' }] })
    expect(await events(simulator.url)).toEqual({ DocumentIncarnation: 9, Events: [{ EventId: 'by-hand' }] })
    expect((await approve(simulator.url, 'BY-HAND')).status).toBe(200)
    expect((await approve(simulator.url, 'ABC')).status).toBe(400)
    simulator.setDocument('{"Events":')
    expect((await ask(simulator.url + eventsPath())).text).toBe('{"Events":')
    simulator.setDocument(null)
    expect(await events(simulator.url)).toMatchObject({ Events: [{ EventId: 'ABC' }] })
  })
})

describe('a request', () => {
  const cases: [string, string, Parameters<typeof ask>[1], number, string | RegExp][] = [
    ['without the Metadata header', eventsPath(), { headers: {} }, 400, /Required metadata header not specified/],
    ['with another value in the Metadata header', eventsPath(), { headers: { Metadata: 'yes' } }, 400, /Required metadata header/],
    ['without the header in the preview version', eventsPath('2017-03-01'), { headers: {} }, 200, /"Events"/],
    ['without an API version', '/metadata/scheduledevents', {}, 400, /api-version is invalid or was not specified/],
    ['with an unknown API version', eventsPath('2021-01-01'), {}, 400, /api-version is invalid/],
    ['with {latest} as API version', eventsPath('{latest}'), {}, 400, /api-version is invalid/],
    ['that was forwarded', eventsPath(), { headers: { Metadata: 'true', 'X-Forwarded-For': '10.0.0.1' } }, 400, /X-Forwarded-For/],
    ['with a parameter given twice', `${eventsPath()}&api-version=2020-07-01`, {}, 400, /more than once/],
    ['for an unknown path', '/metadata/loadbalancer?api-version=2020-07-01', {}, 404, /Not found/],
    ['for the root', '/', {}, 404, /Not found/],
    ['with PUT', eventsPath(), { method: 'PUT', body: '{}' }, 405, /isn't allowed: Path = \/metadata\/scheduledevents, Method = PUT/],
    ['that posts to the instance metadata', '/metadata/instance?api-version=2025-04-07', { method: 'POST' }, 405, /Method = POST/],
    ['that posts nothing', eventsPath(), { method: 'POST' }, 400, /expected a body/],
    ['that posts no JSON', eventsPath(), { method: 'POST', body: 'StartRequests' }, 400, /expected JSON/],
    ['that posts another object', eventsPath(), { method: 'POST', body: '{"EventId":"ABC"}' }, 400, /StartRequests/],
    ['that posts an empty list', eventsPath(), { method: 'POST', body: '{"StartRequests":[]}' }, 400, /StartRequests/],
    ['that posts more than 64 KiB', eventsPath(), { method: 'POST', body: 'x'.repeat(65_537) }, 413, /65536/],
  ]

  it.for(cases)('%s is answered as IMDS does', async ([, path, question, status, text]) => {
    const { url } = await play(scenarioOf({ events: [reboot] }))
    const reply = await ask(url + path, { headers: { Metadata: 'true' }, ...question })
    expect(reply.status).toBe(status)
    expect(reply.text).toMatch(text)
  })

  it('that is refused gets the bodies that were captured or documented', async () => {
    const { url } = await play(scenarioOf({ events: [] }))
    expect((await ask(url + eventsPath(), { headers: {} })).text).toBe((await captured('e01-400-no-metadata-header.txt')).trim())
    const unversioned = await ask(`${url}/metadata/instance`)
    expect(JSON.parse(unversioned.text)).toEqual(JSON.parse(await captured('e02-400-missing-api-version.json')))
  })

  it('in absolute form, as one for a proxy, is answered by nobody here', async () => {
    const { url } = await play(scenarioOf({ events: [] }))
    const { hostname, port } = new URL(url)
    const status = await new Promise((resolve, reject) => {
      const path = `http://169.254.169.254${eventsPath()}`
      request({ hostname, port, path, headers: { Metadata: 'true' }, agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
        .on('error', reject)
        .end()
    })
    expect(status).toBe(404)
  })

  it('beyond the budget of its machine gets 429 without Retry-After, until a second has passed', async () => {
    const simulator = await play(scenarioOf({ vms: [{ name: 'a' }, { name: 'b' }], events: [] }), { rateLimit: 5 })
    const statuses: number[] = []
    for (let count = 0; count < 6; count += 1) statuses.push((await ask(simulator.url + eventsPath())).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    const refused = await ask(simulator.url + eventsPath())
    expect(JSON.parse(refused.text)).toEqual(JSON.parse(await captured('e06-429-lb-style.json')))
    expect(refused.headers['retry-after']).toBeUndefined()
    expect((await ask((simulator.urls[1] ?? '') + eventsPath())).status).toBe(200)
    simulator.to(1)
    expect((await ask(simulator.url + eventsPath())).status).toBe(200)
  })
})

describe('an approval', () => {
  it('starts its event soon after, for all its resources, and may be repeated', async () => {
    const simulator = await play(scenarioOf({ events: [{ ...reboot, resources: ['a', 'b'], approvalDelaySeconds: 5 }] }))
    simulator.to(10)
    const answered = await approve(simulator.url, 'abc')
    expect([answered.status, answered.text]).toEqual([200, ''])
    expect((await approve(simulator.url, 'ABC')).status).toBe(200)
    expect(await events(simulator.url)).toMatchObject({ DocumentIncarnation: 1, Events: [{ EventStatus: 'Scheduled' }] })
    simulator.to(15)
    expect(await events(simulator.url)).toMatchObject({
      DocumentIncarnation: 2,
      Events: [{ EventStatus: 'Started', Resources: ['a', 'b'] }],
    })
    expect((await approve(simulator.url, 'ABC')).status).toBe(200)
    simulator.to(15 + 300)
    expect((await approve(simulator.url, 'ABC')).status).toBe(400)
  })

  it('of several events counts only if all of them are known', async () => {
    const other = { ...reboot, id: 'DEF', approvalDelaySeconds: 0 }
    const simulator = await play(scenarioOf({ events: [{ ...reboot, approvalDelaySeconds: 0 }, other] }))
    const refused = await approve(simulator.url, 'ABC', 'XYZ')
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('XYZ')])
    expect(simulator.moment().events.map(({ status }) => status)).toEqual(['Scheduled', 'Scheduled'])
    expect((await approve(simulator.url, 'ABC', 'DEF')).status).toBe(200)
    expect(simulator.moment().events.map(({ status }) => status)).toEqual(['Started', 'Started'])
  })

  it('is accepted in the form of every version', async () => {
    const { url } = await play(scenarioOf({ events: [{ ...reboot, id: 'f020ba2e-3bc0-4c40-a10b-86575a9eabd5' }] }))
    const body = await captured('a02-approve-2017-string-incarnation.json')
    expect((await ask(url + eventsPath('2017-03-01'), { method: 'POST', headers: {}, body })).status).toBe(200)
    const bare = JSON.stringify({ StartRequests: [{ EventId: 'f020ba2e-3bc0-4c40-a10b-86575a9eabd5' }] })
    const without = await ask(url + eventsPath('2017-03-01'), { method: 'POST', headers: {}, body: bare })
    expect([without.status, without.text]).toEqual([400, expect.stringContaining('DocumentIncarnation')])
    const form = { Metadata: 'true', 'Content-Type': 'application/x-www-form-urlencoded' }
    expect((await ask(url + eventsPath(), { method: 'POST', headers: form, body })).status).toBe(200)
  })

  it('of an event that its API version does not show is unknown', async () => {
    const { url } = await play(scenarioOf({ events: [{ ...reboot, type: 'Preempt' }] }))
    const body = '{"StartRequests":[{"EventId":"ABC"}]}'
    expect((await ask(url + eventsPath('2017-08-01'), { method: 'POST', body })).status).toBe(400)
    expect((await ask(url + eventsPath('2017-11-01'), { method: 'POST', body })).status).toBe(200)
  })

  it('releases deletions only once every machine has approved its own', async () => {
    const scenario = await loadScenario('scale-in')
    const simulator = await play(scenario)
    simulator.to(60)
    const statuses = () => simulator.moment().events.map(({ status }) => status)
    for (const [index, url] of simulator.urls.entries()) {
      simulator.to(70 + index)
      expect((await approve(url, scenario.events[index]?.id ?? '')).status).toBe(200)
      simulator.to(71.9 + index)
      expect(statuses()).toEqual(['Scheduled', 'Scheduled', 'Scheduled'])
    }
    simulator.to(82)
    expect(statuses()).toEqual(['Started', 'Started', 'Started'])
  })

  it('of another machine’s deletion passes with a warning', async () => {
    const warnings: object[] = []
    const log = { ...silent, warn: (fields: object) => warnings.push(fields) }
    const simulator = await play(await loadScenario('scale-in'), { log })
    simulator.to(60)
    const ids = simulator.moment().events.map(({ event }) => event.id)
    expect((await approve(simulator.url, ...ids)).status).toBe(200)
    expect(warnings).toEqual(ids.slice(1).map((eventId) => ({ vm: 'batch_1', eventId })))
  })

  it('is kept with its machine, body and answer, whatever became of it', async () => {
    const simulator = await play(scenarioOf({ vms: [{ name: 'a' }, { name: 'b' }], events: [reboot] }))
    await approve(simulator.url, 'nobody')
    await approve(simulator.urls[1] ?? '', 'ABC')
    simulator.setFault({ kind: 'reset' })
    await expect(approve(simulator.url, 'ABC')).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(simulator.posts).toEqual([
      { vm: 'a', at: epoch, body: '{"StartRequests":[{"EventId":"nobody"}]}', eventIds: ['nobody'], status: 400, fault: null },
      { vm: 'b', at: epoch, body: '{"StartRequests":[{"EventId":"ABC"}]}', eventIds: ['ABC'], status: 200, fault: null },
      { vm: 'a', at: epoch, body: '{"StartRequests":[{"EventId":"ABC"}]}', eventIds: ['ABC'], status: 200, fault: 'reset' },
    ])
  })

  it('by somebody else has the same effect', async () => {
    const simulator = await play(scenarioOf({ events: [{ ...reboot, approvalDelaySeconds: 0 }] }))
    expect(simulator.approve('nobody')).toBe(false)
    expect(simulator.approve('abc')).toBe(true)
    expect(await events(simulator.url)).toMatchObject({ Events: [{ EventStatus: 'Started' }] })
    expect(simulator.posts).toEqual([])
  })
})

describe('instance metadata', () => {
  const compute = '/metadata/instance/compute?api-version=2025-04-07&format=json'

  const read = async (urls: readonly string[]): Promise<Record<string, unknown>[]> =>
    Promise.all(urls.map(async (url) => JSON.parse((await ask(url + compute)).text)))

  it('has the shape of the documented sample, with strings throughout', async () => {
    const { url } = await play(await loadScenario('live-migration'))
    const sample: Record<string, unknown> = JSON.parse(await captured('i01-instance-compute-doc.json'))
    const answered: Record<string, unknown> = JSON.parse((await ask(url + compute)).text)
    expect(Object.keys(answered).toSorted()).toEqual(Object.keys(sample).toSorted())
    expect(answered).toMatchObject({
      name: 'web_0',
      vmScaleSetName: 'web',
      osProfile: { computerName: 'web000000' },
      subscriptionId: '00000000-0000-0000-0000-000000000000',
      vmId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4/),
    })
    for (const [key, value] of Object.entries(sample)) expect([key, typeof answered[key]]).toEqual([key, typeof value])
  })

  it('identifies each machine by its own, the same in every run', async () => {
    const scenario = scenarioOf({ vms: [{ name: 'web_85' }, { name: 'lonely' }], events: [] })
    const first = await play(scenario)
    const second = await play(scenario)
    const [set, alone] = await read(first.urls)
    expect(set).toMatchObject({ name: 'web_85', osProfile: { computerName: 'web00002D' } })
    expect(alone).toMatchObject({ name: 'lonely', vmScaleSetName: '', virtualMachineScaleSet: { id: '' } })
    expect(set?.['vmId']).not.toBe(alone?.['vmId'])
    expect(await read(second.urls)).toEqual([set, alone])
  })

  it('takes over what the scenario says of a machine', async () => {
    const overrides = { name: 'OTHER', tagsList: [{ name: 'role', value: 'db' }], osProfile: { adminUsername: 'me' } }
    const { url } = await play(scenarioOf({ vms: [{ name: 'web_1', compute: overrides }], events: [] }))
    expect(JSON.parse((await ask(url + compute)).text)).toMatchObject({
      name: 'OTHER',
      tagsList: [{ name: 'role', value: 'db' }],
      osProfile: { adminUsername: 'me', computerName: 'web000001' },
      vmScaleSetName: 'web',
    })
  })

  it('can be read whole, in part, and leaf by leaf as text', async () => {
    const { url } = await play(await loadScenario('live-migration'))
    const get = (path: string) => ask(`${url}/metadata/instance${path}`)
    expect(JSON.parse((await get('?api-version=2021-02-01')).text)).toMatchObject({
      compute: { name: 'web_0' },
      network: { interface: [{}] },
    })
    expect((await get('/compute/name?api-version=2021-02-01&format=text')).text).toBe('web_0')
    expect((await get('/compute/osProfile?api-version=2021-02-01&format=text')).text).toBe('computerName')
    expect((await get('?api-version=2021-02-01&format=text')).text).toBe('compute/\nnetwork/')
    const address = '/network/interface/0/ipv4/ipAddress/0/privateIpAddress'
    expect((await get(`${address}?api-version=2021-02-01&format=text`)).text).toBe('10.0.0.4')
    expect((await get('/compute/name?api-version=2021-02-01')).status).toBe(400)
    expect((await get('/compute/name?api-version=2021-02-01&format=xml')).status).toBe(400)
    expect((await get('/compute/constructor?api-version=2021-02-01&format=text')).status).toBe(404)
    expect((await get('/compute?api-version=2020-07-01')).status).toBe(400)
  })

  it('of an older IMDS does not know the newest version', async () => {
    const { url } = await play(scenarioOf({ events: [] }), { instanceVersions: ['2020-12-01', '2021-02-01'] })
    expect((await ask(url + compute)).status).toBe(400)
    expect((await ask(`${url}/metadata/instance/compute?api-version=2021-02-01`)).status).toBe(200)
  })
})

describe('the simulator', () => {
  it('tells the story in its log as it happens, and when it is over', async () => {
    const told: object[] = []
    const log = { ...silent, info: (fields: object) => told.push(fields) }
    const simulator = await startImdsSimulator({ scenario: await loadScenario('hardware-failure'), speed: 3000, log })
    afterwards(() => simulator.close())
    expect(await simulator.finished).toBe('ended')
    const event = expect.stringMatching(/^Reboot [0-9A-F-]{36} Started$/)
    expect(told).toEqual([
      { incarnation: 1, events: [] },
      { incarnation: 2, events: [event] },
      { incarnation: 3, events: [] },
    ])
    expect(await events(simulator.url)).toEqual({ DocumentIncarnation: 3, Events: [] })
  })

  it('notices an earlier end that an approval brings', async () => {
    const event = { ...reboot, noticeSeconds: 1e9, approvalDelaySeconds: 0, startedForSeconds: 0.02 }
    const simulator = await startImdsSimulator({ scenario: scenarioOf({ events: [event] }), log: silent })
    afterwards(() => simulator.close())
    await approve(simulator.url, 'ABC')
    expect(await simulator.finished).toBe('ended')
  })

  it('closes at once although requests hang, and more than once', async () => {
    const simulator = await startImdsSimulator({ scenario: scenarioOf({ events: [reboot] }), log: silent })
    simulator.setFault({ kind: 'hang' })
    const hanging = ask(simulator.url + eventsPath()).catch((error: unknown) => error)
    await expect.poll(() => simulator.requests.length).toBe(1)
    await simulator.close()
    await simulator.close()
    expect(await hanging).toMatchObject({ code: 'ECONNRESET' })
    expect(await simulator.finished).toBe('closed')
  })

  it('takes one port per machine from the given one on, and gives all back when one is taken', async () => {
    const scenario = scenarioOf({ vms: [{ name: 'a' }, { name: 'b' }], events: [] })
    // An address of its own, where no other test has ports.
    const host = '127.88.0.1'
    const blocker = createServer()
    await new Promise<void>((resolve) => blocker.listen(0, host, resolve))
    const address = blocker.address()
    const taken = typeof address === 'object' && address !== null ? address.port : 0
    await expect(startImdsSimulator({ scenario, port: taken - 1, host, log: silent })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining(`${host}:${taken} (EADDRINUSE)`),
    })
    await new Promise((resolve) => blocker.close(resolve))
    const simulator = await startImdsSimulator({ scenario, port: taken - 1, host, log: silent })
    afterwards(() => simulator.close())
    expect(simulator.urls).toEqual([`http://${host}:${taken - 1}`, `http://${host}:${taken}`])
  })

  it('refuses a speed or a port out of range', async () => {
    const scenario = scenarioOf({ vms: [{ name: 'a' }, { name: 'b' }], events: [] })
    for (const wrong of [{ speed: 0 }, { speed: Number.NaN }, { port: 65_535 }, { port: -1 }]) {
      await expect(startImdsSimulator({ scenario, log: silent, ...wrong })).rejects.toMatchObject({ code: 'usage' })
    }
  })
})
