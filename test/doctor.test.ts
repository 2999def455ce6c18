import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { examineClock, examineImds, examineSink, examineState, type Finding } from '../src/doctor.ts'
import type { ImdsClient } from '../src/imds/client.ts'
import { parseDocument } from '../src/imds/document.ts'
import { failure } from '../src/imds/failure.ts'
import { eventOf } from './outbox/outbox-events.ts'
import { openOutbox } from './outbox/outbox-fixture.ts'

const states = (findings: readonly Finding[]) => findings.map(({ part, state }) => `${part} ${state}`)
const now = Date.parse('2026-05-21T10:00:00Z')

function imds(resources: string[] | null, metadata: unknown): ImdsClient {
  const Events = resources === null ? [] : [{ EventId: 'a', EventType: 'Reboot', EventStatus: 'Scheduled', Resources: resources }]
  const parsed = parseDocument({ DocumentIncarnation: 3, Events })
  if (!parsed.ok) throw new Error(parsed.problem)
  return {
    getEvents: async () => ({ kind: 'document', document: parsed.document, changed: true }),
    getJson: async () => (metadata === null ? failure('http_status', 'expected status 200, got 404') : { kind: 'json', value: metadata }),
    startRequests: async () => ({ kind: 'accepted' }),
    close: async () => {},
  }
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'foreshock-doctor-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

describe('the doctor', () => {
  it('finds a healthy machine healthy', async () => {
    expect(states(await examineImds(imds(['web_0'], { name: 'web_0', vmId: 'v' }), {}))).toEqual(['imds ok', 'identity ok', 'name ok'])
  })

  it('notes that no event names this VM, for that may be right', async () => {
    expect(states(await examineImds(imds(['web_10'], { name: 'web_1' }), {}))).toEqual(['imds ok', 'identity ok', 'name note'])
  })

  it('says how to make up for missing metadata, and is content where the configuration does', async () => {
    const missing = await examineImds(imds(null, null), {})
    expect(states(missing)).toEqual(['imds ok', 'identity bad', 'name bad'])
    expect(missing[1]?.cure).toMatch(/identity\.source and identity\.vmName/)
    expect(states(await examineImds(imds(null, null), { vmName: 'web_0', source: 'urn:lab' }))).toEqual([
      'imds ok',
      'identity note',
      'name ok',
    ])
  })

  it('looks no further where IMDS gives no document', async () => {
    const client: ImdsClient = { ...imds(null, null), getEvents: async () => failure('refused', 'nothing listens there') }
    expect(states(await examineImds(client, {}))).toEqual(['imds bad'])
  })

  it.each([
    ['Thu, 21 May 2026 10:00:30 GMT', 'ok', /30 s behind/],
    ['Thu, 21 May 2026 09:58:00 GMT', 'bad', /120 s ahead/],
    [null, 'note', /nothing to compare/],
    ['yesterday', 'note', /nothing to compare/],
  ])('holds the clock against %s', (remote, state, detail) => {
    const finding = examineClock(remote, now)
    expect(finding.state).toBe(state)
    expect(finding.detail).toMatch(detail)
  })

  it('tells a state file that is there, that can be made, and that is none of ours', async () => {
    const path = await folder()
    expect(states(await examineState(join(path, 'deep/er/state.db'), () => now))).toEqual(['state ok'])
    await writeFile(join(path, 'text.db'), 'no database at all, but long enough to look at '.repeat(50))
    const [foreign] = await examineState(join(path, 'text.db'), () => now)
    expect([foreign?.state, foreign?.cure]).toEqual(['bad', expect.stringContaining('sets such a file aside')])
  })

  it('tells what waits, what died and what is halted, beside the forwarder that runs', async () => {
    const { path, store } = openOutbox()
    store.commit({ events: [{ event: eventOf('a'), priority: 0, targets: [{ sink: 'hook', expiresAt: Date.now() + 60_000 }] }] })
    store.halt('hook', 'http_410: gone')
    const findings = await examineState(path, Date.now)
    expect(states(findings)).toEqual(['state ok', 'outbox bad'])
    expect(findings.map(({ detail }) => detail).join('\n')).toMatch(/1 deliveries wait[^]*hook is halted: http_410: gone/)
  })

  it('passes on what a sink says of itself', async () => {
    const bad = { check: async () => ({ ok: false as const, detail: 'no route', cure: 'check the firewall' }) }
    expect(await examineSink('siem', bad, 1000)).toEqual({
      part: 'sink siem',
      state: 'bad',
      detail: 'no route',
      cure: 'check the firewall',
    })
    const good = { check: async () => ({ ok: true as const, detail: 'connected' }) }
    expect(await examineSink('siem', good, 1000)).toEqual({ part: 'sink siem', state: 'ok', detail: 'connected' })
  })
})
