import { expect, it } from 'vitest'
import { ask } from '../simulator/imds/play.ts'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { afterwards, documentOf, entryOf, eventsIn, eventually, openStage, run, told, type Program } from '../support/program.ts'

const marker = 'MARKER-7f3a9c'

/** Where the admin endpoint listens, as the log tells. */
function adminOf(program: Program): Promise<string> {
  return eventually(() => {
    const line = program.log().find(({ msg }) => msg === 'the admin endpoint listens')
    expect(line).toMatchObject({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) })
    return String(line?.['url'])
  })
}

async function openAdministered(sinks: readonly Record<string, unknown>[] = [], keys: Record<string, unknown> = {}) {
  const stage = await openStage()
  const config = stage.configure({
    admin: { listen: '127.0.0.1:0' },
    sinks: [{ name: 'log', type: 'file', path: stage.file }, ...sinks],
    ...keys,
  })
  return { ...stage, config }
}

it('answers /healthz at once and /readyz as warming up, then ready, then not, with the reason, then ready again', async () => {
  const { imds, configure, file, forward } = await openStage()
  imds.setFault({ kind: 'status', status: 500, on: ['events'] })
  configure({ admin: { listen: '127.0.0.1:0' }, sinks: [{ name: 'log', type: 'file', path: file }] })
  const admin = await adminOf(forward())
  expect(await ask(`${admin}/healthz`)).toMatchObject({ status: 200, text: 'ok\n' })
  await eventually(() => expect(imds.requests.filter(({ path }) => path.includes('scheduledevents')).length).toBeGreaterThan(1))
  expect(await ask(`${admin}/readyz`)).toMatchObject({ status: 200 })
  expect(JSON.parse((await ask(`${admin}/status`)).text)).toMatchObject({ imds: { health: { state: 'warming-up' } } })

  imds.clearFaults()
  await eventually(async () => expect(JSON.parse((await ask(`${admin}/status`)).text)).toMatchObject({ imds: { health: { state: 'ok' } } }))
  expect(JSON.parse((await ask(`${admin}/readyz`)).text)).toEqual({ ready: true, reasons: [] })
  imds.setFault({ kind: 'status', status: 500, on: ['events'] })
  await eventually(async () =>
    expect(await ask(`${admin}/readyz`)).toMatchObject({ status: 503, text: expect.stringMatching(/IMDS gives no document: .*got 500/) }),
  )
  expect(await ask(`${admin}/healthz`)).toMatchObject({ status: 200 })
  imds.clearFaults()
  await eventually(async () => expect(await ask(`${admin}/readyz`)).toMatchObject({ status: 200 }))
})

it('is not ready while a sink is halted', async () => {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  hook.behave({ does: 'answer', status: 410 })
  const { forward } = await openAdministered([{ name: 'hook', type: 'webhook', url: hook.origin }])
  const admin = await adminOf(forward())
  await eventually(async () =>
    expect(await ask(`${admin}/readyz`)).toMatchObject({ status: 503, text: expect.stringMatching(/sink hook is halted/) }),
  )
})

it('tells what is live, what waits and how each sink is, in /status and in the status command', async () => {
  const { imds, file, forward } = await openAdministered()
  imds.setDocument(documentOf(7, entryOf()))
  const admin = await adminOf(forward())
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  const status = await eventually(async () => {
    const found: unknown = JSON.parse((await ask(`${admin}/status`)).text)
    expect(found).toMatchObject({ sinks: [{ pending: 0 }] })
    return found
  })
  expect(status).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    ready: true,
    vm: { name: 'web_0', vmId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    imds: { endpoint: imds.url, health: { state: 'ok' }, incarnation: 7 },
    events: [{ eventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123', eventType: 'Reboot', eventStatus: 'Scheduled', resources: ['web_0'] }],
    sinks: [{ name: 'log', type: 'file', health: { state: 'ok' }, pending: 0, dead: 0, oldestPendingAt: null }],
  })

  // The command asks the address of the configuration, so it needs the one that was picked.
  const asked = await openAdministered([], { admin: { listen: new URL(admin).host } })
  const command = await run(['status', '--config', asked.config])
  expect({ status: command.status, stderr: command.stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(command.stdout)).toMatchObject({ vm: { name: 'web_0' }, events: [{ eventType: 'Reboot' }] })
})

it('shows no secret: not in status, metrics, logs, outbox or check', async () => {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  hook.behave({ does: 'answer', status: 401, body: marker })
  const url = `${hook.origin}/${marker}?key=${marker}`
  const { imds, config, forward } = await openAdministered(
    [
      { name: 'hook', type: 'webhook', url, headers: { Authorization: `Bearer ${marker}` } },
      { name: 'down', type: 'webhook', url: `http://127.0.0.1:1/${marker}?key=${marker}`, headers: { 'X-Key': '${SECRET}' } },
    ],
    { log: { level: 'trace' } },
  )
  imds.setDocument(documentOf(2, entryOf()))
  const env = { SECRET: marker }
  const forwarder = forward({ env })
  const admin = await adminOf(forwarder)
  await eventually(() => expect(hook.requests).not.toEqual([]))
  expect(hook.requests[0]).toMatchObject({ path: `/${marker}?key=${marker}`, headers: { authorization: `Bearer ${marker}` } })
  await eventually(() => expect(forwarder.log()).toContainEqual(expect.objectContaining({ sink: 'down', code: 'network' })))
  const listed = await eventually(async () => {
    const found = await run(['outbox', 'list', '--json', '--config', config], { env })
    expect(found.stdout).toMatch(/"http_401"/)
    return found.stdout
  })
  const id = eventsIdOf(listed)
  const said = {
    status: (await ask(`${admin}/status`)).text,
    readyz: (await ask(`${admin}/readyz`)).text,
    metrics: (await ask(`${admin}/metrics`)).text,
    log: forwarder.stderr.join('\n'),
    listed,
    list: (await run(['outbox', 'list', '--config', config], { env })).stdout,
    show: (await run(['outbox', 'show', id, '--config', config], { env })).stdout,
    check: (await run(['check', '--config', config], { env })).stdout,
    checkJson: (await run(['check', '--json', '--config', config], { env })).stdout,
  }
  for (const [where, text] of Object.entries(said)) {
    expect({ where, says: text.length > 20, leaks: text.includes(marker) }).toEqual({ where, says: true, leaks: false })
  }
})

const eventsIdOf = (listed: string): string => /"id": "(c7061bac[^"]+)"/.exec(listed)?.[1] ?? ''

it('measures what the documentation names, with bounded labels', async () => {
  const hook = await startHttpReceiver()
  afterwards(() => hook.stop())
  hook.behave({ does: 'answer', status: 400 })
  const { imds, file, forward } = await openAdministered([{ name: 'hook', type: 'webhook', url: hook.origin }])
  const soon = new Date(Date.now() + 600_000).toUTCString()
  imds.setDocument(
    documentOf(7, entryOf({ NotBefore: soon }), entryOf({ EventId: 'x', EventType: 'Quake-4711', EventStatus: 'Started', NotBefore: '' })),
  )
  const admin = await adminOf(forward())
  await eventually(() => expect(told(eventsIn(file))).toHaveLength(2))
  imds.setFault({ kind: 'empty', on: ['events'], times: 1 })
  const text = await eventually(async () => {
    const { text } = await ask(`${admin}/metrics`)
    expect(text).toMatch(/^foreshock_polls_total\{result="empty_body"\} 1$/m)
    expect(text).toMatch(/^foreshock_poll_gap_seconds_count [1-9]/m)
    expect(text).toMatch(/^foreshock_dead_letters\{sink="hook"\} [3-9]$/m)
    return text
  })
  for (const line of [
    /^foreshock_build_info\{version="\d+\.\d+\.\d+",node="24\.[\d.]+"\} 1$/m,
    /^foreshock_polls_total\{result="ok"\} [1-9]\d*$/m,
    /^foreshock_document_incarnation 7$/m,
    /^foreshock_events_live\{type="Reboot",status="scheduled"\} 1$/m,
    /^foreshock_events_live\{type="other",status="started"\} 1$/m,
    /^foreshock_transitions_total\{type="Reboot",status="scheduled"\} 1$/m,
    /^foreshock_lead_time_seconds_count\{type="Reboot"\} 1$/m,
    /^foreshock_delivery_latency_seconds_count\{sink="log"\} [1-9]\d*$/m,
    /^foreshock_outbox_depth\{sink="log"\} 0$/m,
    /^foreshock_outbox_oldest_age_seconds\{sink="log"\} 0$/m,
    /^foreshock_deliveries_total\{sink="log",outcome="delivered"\} [1-9]\d*$/m,
    /^foreshock_deliveries_total\{sink="hook",outcome="rejected"\} [1-9]\d*$/m,
    /^foreshock_last_good_poll_timestamp_seconds \d{10}/m,
  ]) {
    expect(text).toMatch(line)
  }
  for (const [, name = ''] of text.matchAll(/^# TYPE (\S+) counter$/gm)) expect(name).toMatch(/^foreshock_\w+_total$/)
  expect(text).not.toMatch(/Quake/)
})
