import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allowedRate } from '../../../sinks/webhook/allowed-rate.ts'

const minute = 60_000

describe('an allowed rate', () => {
  it('gives so many slots a minute, and says when the next one is free', () => {
    let at = 0
    const rate = allowedRate(() => at)
    for (let slot = 0; slot < 3; slot += 1) {
      const taken = rate.take(3)
      if ('done' in taken) taken.done()
      at += 1000
    }
    // The first was answered at 0.
    expect(rate.take(3)).toEqual({ waitMs: minute - 3000 })
    at = minute
    expect(rate.take(3)).toHaveProperty('done')
    expect(rate.take(3)).toEqual({ waitMs: 1000 })
  })

  it('counts requests under way', () => {
    const rate = allowedRate(() => 0)
    expect(rate.take(1)).toHaveProperty('done')
    expect(rate.take(1)).toEqual({ waitMs: 1000 })
  })

  it('sets no limit where the receiver sets none', () => {
    const rate = allowedRate(() => 0)
    for (let slot = 0; slot < 1000; slot += 1) expect(rate.take(Number.POSITIVE_INFINITY)).toHaveProperty('done')
  })

  it('never asks to wait longer than a minute, though the clock was set back', () => {
    let at = 1_000_000
    const rate = allowedRate(() => at)
    const taken = rate.take(1)
    if ('done' in taken) taken.done()
    at = 0
    expect(rate.take(1)).toEqual({ waitMs: minute })
  })

  it('is kept to in every minute of the receiver, however long requests are on their way', () => {
    const request = fc.record({ pause: fc.nat(20_000), there: fc.nat(30_000), back: fc.nat(30_000) })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(request, { maxLength: 60 }), (perMinute, requests) => {
        let at = 0
        const rate = allowedRate(() => at)
        const arrivals: number[] = []
        const answers: { readonly at: number; readonly done: () => void }[] = []
        for (const { pause, there, back } of requests) {
          const until = at + pause
          for (const answer of answers.filter((one) => one.at <= until).toSorted((a, b) => a.at - b.at)) {
            at = answer.at
            answer.done()
            answers.splice(answers.indexOf(answer), 1)
          }
          at = until
          const slot = rate.take(perMinute)
          if (!('done' in slot)) continue
          arrivals.push(at + there)
          answers.push({ at: at + there + back, done: slot.done })
        }
        for (const start of arrivals) {
          expect(arrivals.filter((arrival) => arrival >= start && arrival < start + minute).length).toBeLessThanOrEqual(perMinute)
        }
      }),
    )
  })
})
