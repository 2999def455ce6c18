import { assert, base64String, json, oneof, option, property, string, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { judgeEvent, judgeMessage, type EventFacts, type MessageFacts } from '../../src/approvals/gate.ts'
import { parseJws } from '../../src/approvals/jws.ts'
import { readPlainMessage } from '../../src/approvals/message.ts'
import { isLast, pauseMs, settlementOf } from '../../src/approvals/settlement.ts'
import { unreadable, type ApprovalRequest, type Signature } from '../../src/approvals/request.ts'
import { eventId } from './stage.ts'

const now = Date.parse('2026-05-21T10:00:00Z')

/** Everything that can be wrong with a message, in the order of the gate; mended one after the other. */
const badSignature: Signature = { typ: 'JWT', alg: 'none', kid: 'x', subject: 'anna', key: null, valid: false }
const key = { thumbprint: 't', alg: 'ES256', issuers: ['ops'], eventTypes: null, audiences: null } as const
const worst: ApprovalRequest = {
  ...unreadable('queue', 1_000_000, 'm', 'no JSON'),
  wanted: [{ command: 'reject', eventId, digest: null, resources: null }],
  audience: ['elsewhere'],
  validity: { issuedAt: now + 120_000, notBefore: null, expiresAt: now - 120_000 },
  signed: { issuer: 'mallory', signatures: [badSignature] },
}
const signature = (more: Partial<Signature>) => (request: ApprovalRequest) => ({
  ...request,
  signed: { issuer: request.signed?.issuer ?? '', signatures: (request.signed?.signatures ?? []).map((one) => ({ ...one, ...more })) },
})
const mends: readonly (readonly [code: string, mend: (request: ApprovalRequest) => ApprovalRequest])[] = [
  ['too_large', (request) => ({ ...request, bytes: 65_536 })],
  ['malformed', (request) => ({ ...request, problem: null })],
  ['bad_typ', signature({ typ: 'foreshock-approval+jws' })],
  ['bad_alg', signature({ alg: 'ES256' })],
  ['unknown_key', signature({ key })],
  ['bad_signature', signature({ valid: true })],
  ['issuer_not_allowed', (request) => ({ ...request, signed: { issuer: 'ops', signatures: request.signed?.signatures ?? [] } })],
  ['wrong_audience', (request) => ({ ...request, audience: ['/HERE'] })],
  ['not_yet_valid', (request) => ({ ...request, validity: { ...request.validity, issuedAt: now - 700_000 } })],
  ['expired', (request) => ({ ...request, validity: { ...request.validity, expiresAt: now - 59_999 } })],
  ['lifetime_too_long', (request) => ({ ...request, validity: { ...request.validity, issuedAt: now - 600_000 } })],
]

describe('the gate', () => {
  it('asks of a message in the written order: each reason comes to light when those before it are mended', () => {
    const codes: unknown[] = []
    let request = worst
    const judge = (replayed: boolean) => judgeMessage({ request, now, addresses: ['/here'], replayed } satisfies MessageFacts)?.code
    for (const [, mend] of mends) {
      codes.push(judge(true))
      request = mend(request)
    }
    expect([...codes, judge(true), judge(false)]).toEqual([...mends.map(([code]) => code), 'replayed', 'unsupported_command'])
    request = { ...request, wanted: [{ command: 'hold', eventId, digest: null, resources: null }] }
    expect(judge(false)).toBeUndefined()
  })

  it('asks of an event in the written order', () => {
    const event = {
      eventId,
      eventType: 'Terminate',
      eventStatus: 'Started',
      eventSource: null,
      notBefore: null,
      resources: ['web_1', 'web_2'],
      durationInSeconds: null,
      resourceType: null,
      description: null,
    }
    const rules = {
      events: 'any',
      leaderOnly: true,
      maxResources: 1,
      eventTypes: ['Freeze'],
      rateLimit: { approvals: 1, perSeconds: 60 },
    } as const
    const wanted = { command: 'approve', eventId, digest: '0'.repeat(16), resources: ['web_9'] }
    let facts: EventFacts = { wanted, event: null, vmName: 'web_2', rules, held: true, signatures: [], quorum: 2, recent: 1 }
    const codes: unknown[] = []
    const judge = (change: Partial<EventFacts>): void => {
      facts = { ...facts, ...change }
      codes.push(judgeEvent(facts)?.code)
    }
    const scheduled = { ...event, eventStatus: 'Scheduled' }
    judge({})
    judge({ event })
    judge({ event: scheduled })
    judge({ wanted: { ...wanted, digest: null } })
    judge({ wanted: { ...wanted, digest: null, resources: null }, vmName: 'web_3' })
    judge({ vmName: 'web_2' })
    judge({ rules: { ...rules, leaderOnly: false } })
    judge({ rules: { ...rules, leaderOnly: false, maxResources: 2 } })
    judge({ rules: { ...rules, leaderOnly: false, maxResources: 2, eventTypes: ['terminate'] } })
    judge({ held: false })
    judge({ quorum: 0 })
    judge({ recent: 0 })
    expect(codes).toEqual([
      'event_not_visible',
      'event_already_started',
      'state_changed',
      'resources_mismatch',
      'not_this_vm',
      'not_leader',
      'too_many_resources',
      'event_type_not_permitted',
      'held',
      'quorum_not_met',
      'rate_limited',
      undefined,
    ])
  })

  it('does not know what Resources hold where a part of them could not be read, and refuses', () => {
    const event = {
      eventId,
      eventType: 'Reboot',
      eventStatus: 'Scheduled',
      eventSource: null,
      notBefore: null,
      resources: ['web_0'],
      durationInSeconds: null,
      resourceType: null,
      description: null,
      unreadable: ['resources' as const],
    }
    const rules = {
      events: 'own',
      leaderOnly: false,
      maxResources: 9,
      eventTypes: ['Reboot'],
      rateLimit: { approvals: 9, perSeconds: 1 },
    } as const
    const wanted = { command: 'approve', eventId, digest: null, resources: null }
    expect(judgeEvent({ wanted, event, vmName: 'web_0', rules, held: false, signatures: [], quorum: 0, recent: 0 })?.code).toBe(
      'too_many_resources',
    )
  })
})

describe('a body', () => {
  const bytes = oneof(
    uint8Array({ maxLength: 300 }),
    json().map((text) => Buffer.from(text)),
    base64String().map((text) => Buffer.from(`${text}.${text}.`)),
  )

  it('of whatever bytes is read or refused, never thrown at', () => {
    assert(
      property(bytes, option(string(), { nil: null }), (body, contentType) => {
        const request = readPlainMessage({ body: Buffer.from(body), contentType, messageId: null, properties: {} }, 'foreshock')
        expect(request.wanted.length > 0).toBe(request.problem === null)
        expect(parseJws(Buffer.from(body))).toHaveProperty('ok')
      }),
    )
  })

  it('that IMDS itself would take asks for each event once', () => {
    const body = Buffer.from(JSON.stringify({ StartRequests: [{ EventId: 'A-1' }, { EventId: 'a-1' }, { EventId: 'b-2' }] }))
    const { wanted } = readPlainMessage({ body, contentType: null, messageId: null, properties: {} }, 'foreshock')
    expect(wanted.map(({ command, eventId }) => [command, eventId])).toEqual([
      ['approve', 'a-1'],
      ['approve', 'b-2'],
    ])
  })
})

describe('the settlement', () => {
  it.each([
    [['ok'], false, 'complete', 'ok'],
    [['event_already_started'], false, 'complete', 'event_already_started'],
    [['replayed'], false, 'complete', 'replayed'],
    [['malformed'], false, 'dead-letter', 'malformed'],
    [['relay_failed'], false, 'abandon', 'relay_failed'],
    [['relay_failed'], true, 'dead-letter', 'relay_failed'],
    [['ok', 'event_not_visible'], false, 'abandon', 'event_not_visible'],
    [['not_this_vm', 'rate_limited'], false, 'abandon', 'rate_limited'],
    [['ok', 'not_this_vm'], false, 'dead-letter', 'not_this_vm'],
  ] as const)('of %j, last %s, is %s for %s', (codes, last, settlement, code) => {
    expect(settlementOf(codes, last)).toEqual({ settlement, code })
  })

  it('pauses twice as long each time, at most 30 s, and knows the last delivery and the last moment', () => {
    expect([0, 1, 2, 20].map((count) => pauseMs(count, 2000))).toEqual([2000, 4000, 8000, 30_000])
    expect(isLast({ deliveryCount: 8, expiresAt: null }, 10, now, 2000)).toBe(false)
    expect(isLast({ deliveryCount: 9, expiresAt: null }, 10, now, 2000)).toBe(true)
    expect(isLast({ deliveryCount: 0, expiresAt: now + 2000 }, 10, now, 2000)).toBe(true)
    expect(isLast({ deliveryCount: 0, expiresAt: now + 2001 }, 10, now, 2000)).toBe(false)
  })
})
