import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sink } from '../../../sinks/contract.ts'
import webhook from '../../../sinks/webhook.ts'
import { startHttpReceiver, type Behaviour, type HttpReceiver } from '../../support/http-receiver.ts'
import { sampleEvent } from '../../support/sample-event.ts'
import { testContext, unhurried } from '../../support/sink-conformance.ts'

const silence: Behaviour = { does: 'answer', status: 200, headers: { allow: 'POST' } }
const consent = (rate = '*', origin = '*'): Behaviour => ({
  does: 'answer',
  status: 200,
  headers: { 'webhook-allowed-origin': origin, 'webhook-allowed-rate': rate, allow: 'POST' },
})

describe('the validation handshake', () => {
  let receiver: HttpReceiver
  let sinks: Sink[]
  let at: number

  beforeEach(async () => {
    receiver = await startHttpReceiver()
    sinks = []
    at = Date.UTC(2026, 2, 1)
  })
  afterEach(async () => {
    for (const sink of sinks) await sink.close()
    await receiver.stop()
  })

  const open = async (validate: unknown = true, more: object = {}): Promise<Sink> => {
    const options = webhook.options.parse({ url: `${receiver.origin}/hook?key=1`, validate, ...more })
    const sink = await webhook.open(options, { ...testContext, now: () => at })
    sinks.push(sink)
    return sink
  }
  const sent = (method: string): HttpReceiver['requests'] => receiver.requests.filter((request) => request.method === method)

  it('comes before the first event, and both say who asks', async () => {
    receiver.behaveTo('OPTIONS', consent())
    const sink = await open({ origin: 'foreshock.contoso.example', rate: 120 }, { auth: { type: 'bearer', token: 'mF_9.B5f-4.1JqM' } })
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
    expect(receiver.requests.map(({ method, path }) => [method, path])).toEqual([
      ['OPTIONS', '/hook?key=1'],
      ['POST', '/hook?key=1'],
    ])
    expect(receiver.requests[0]?.headers).toMatchObject({
      'webhook-request-origin': 'foreshock.contoso.example',
      'webhook-request-rate': '120',
    })
    expect(receiver.requests[0]?.body).toBe('')
    expect(receiver.requests[1]?.headers).toMatchObject({ 'webhook-request-origin': 'foreshock.contoso.example' })
  })

  it('asks once for many events, and anew after a minute', async () => {
    receiver.behaveTo('OPTIONS', consent())
    const sink = await open()
    await Promise.all(Array.from({ length: 16 }, (_, number) => sink.deliver(sampleEvent(number), unhurried())))
    expect([sent('OPTIONS').length, sent('POST').length]).toEqual([1, 16])
    at += 59_999
    await sink.deliver(sampleEvent(17), unhurried())
    expect(sent('OPTIONS')).toHaveLength(1)
    at += 1
    await sink.deliver(sampleEvent(18), unhurried())
    expect(sent('OPTIONS')).toHaveLength(2)
  })

  it.each([
    ['says nothing', silence],
    ['does not know OPTIONS', { does: 'answer', status: 405 }],
    ['allows somebody else', consent('*', 'eventemitter.example.com')],
    ['allows no rate', consent('0')],
  ] satisfies [string, Behaviour][])('sends nothing to a receiver that %s, and keeps the events', async (_, behaviour) => {
    receiver.behaveTo('OPTIONS', behaviour)
    const sink = await open()
    for (let number = 0; number < 3; number += 1) {
      expect(await sink.deliver(sampleEvent(number), unhurried())).toMatchObject({
        status: 'retry',
        because: 'refused',
        code: 'no_consent',
      })
    }
    expect(sent('POST')).toEqual([])
    expect(await sink.check(unhurried())).toMatchObject({ ok: false, cure: expect.stringContaining('WebHook-Allowed-Origin') })
    receiver.behaveTo('OPTIONS', consent())
    expect(await sink.deliver(sampleEvent(4), unhurried())).toEqual({ status: 'delivered' })
  })

  it('stops where consent is withdrawn', async () => {
    receiver.behaveTo('OPTIONS', consent())
    const sink = await open()
    await sink.deliver(sampleEvent(1), unhurried())
    receiver.behaveTo('OPTIONS', silence)
    at += 60_000
    for (let number = 2; number < 5; number += 1) {
      expect(await sink.deliver(sampleEvent(number), unhurried())).toMatchObject({ because: 'refused', code: 'no_consent' })
    }
    expect(sent('POST')).toHaveLength(1)
  })

  it('asks again when an event is refused: without consent the event is not to blame', async () => {
    receiver.behaveTo('OPTIONS', consent())
    const sink = await open()
    await sink.deliver(sampleEvent(1), unhurried())
    receiver.behaveTo('POST', { does: 'answer', status: 403 })
    expect(await sink.deliver(sampleEvent(2), unhurried())).toMatchObject({ status: 'rejected', code: 'http_403' })
    receiver.behaveTo('OPTIONS', silence)
    expect(await sink.deliver(sampleEvent(3), unhurried())).toMatchObject({ status: 'retry', because: 'refused', code: 'no_consent' })
    expect(await sink.deliver(sampleEvent(4), unhurried())).toMatchObject({ code: 'no_consent' })
    expect(sent('POST')).toHaveLength(3)
  })

  it('keeps to the rate: never more than 60 a minute', async () => {
    receiver.behaveTo('OPTIONS', consent('60'))
    const sink = await open()
    const arrivals: number[] = []
    const held: object[] = []
    for (let number = 0; number < 150;) {
      const outcome = await sink.deliver(sampleEvent(number), unhurried())
      if (outcome.status === 'delivered') {
        arrivals.push(at)
        number += 1
        at += 100
      } else {
        held.push(outcome)
        at += outcome.status === 'retry' ? (outcome.retryAfterMs ?? 0) : 0
      }
    }
    expect(held).toEqual(
      held.map(() => expect.objectContaining({ because: 'throttled', code: 'allowed_rate', retryAfterMs: expect.any(Number) })),
    )
    expect(sent('POST')).toHaveLength(150)
    for (const start of arrivals) expect(arrivals.filter((time) => time >= start && time < start + 60_000).length).toBeLessThanOrEqual(60)
    // It does not dawdle either: 150 events at 60 a minute are over in the third minute.
    expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeLessThan(3 * 60_000)
  })

  it.each([
    [410, { status: 'retry', because: 'stopped', code: 'http_410' }],
    [503, { status: 'retry', because: 'throttled', code: 'http_503', retryAfterMs: 7_000 }],
    [500, { status: 'retry', because: 'transient', code: 'http_500' }],
  ])('hears a %i to OPTIONS', async (status, outcome) => {
    receiver.behaveTo('OPTIONS', { does: 'answer', status, headers: { 'retry-after': '7' } })
    const sink = await open()
    expect(await sink.deliver(sampleEvent(1), unhurried())).toMatchObject(outcome)
    expect(sent('POST')).toEqual([])
  })

  it('lets go of an OPTIONS that is never answered, and asks again', async () => {
    receiver.behaveTo('OPTIONS', { does: 'hang' })
    const sink = await open()
    const time = new AbortController()
    const arrived = receiver.nextRequest()
    const delivering = sink.deliver(sampleEvent(1), time)
    await arrived
    time.abort(new DOMException('the time limit', 'TimeoutError'))
    expect(await delivering).toMatchObject({ because: 'transient', code: 'timeout' })
    receiver.behaveTo('OPTIONS', consent())
    expect(await sink.deliver(sampleEvent(1), unhurried())).toEqual({ status: 'delivered' })
  })

  it('is the check, and sends no event', async () => {
    receiver.behaveTo('OPTIONS', consent())
    const sink = await open()
    expect(await sink.check(unhurried())).toMatchObject({ ok: true, detail: expect.stringContaining('consent') })
    expect(sent('POST')).toEqual([])
  })
})
