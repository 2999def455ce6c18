import { describe, expect, it } from 'vitest'
import { classifyAnswer } from '../../../sinks/webhook/answer.ts'

const target = new URL('https://ops.example/hook/s3cret?code=s3cret')
const now = Date.UTC(2026, 2, 1, 12, 0, 0)
const classify = (status: number, more: { retryAfter?: string; location?: string } = {}): object =>
  classifyAnswer({ status, retryAfter: more.retryAfter, location: more.location }, { target, now })

/** The row of the contract, whole: every status that HTTP knows, and some that it does not. */
const expected: Readonly<Record<string, readonly number[]>> = {
  delivered: [200, 201, 202, 204],
  refused: [203, 205, 206, 207, 226, 299, 300, 301, 302, 303, 304, 307, 308],
  rejected: [400, 401, 402, 403, 404, 405, 406, 407, 409, 411, 412, 413, 414, 415, 416, 417, 418, 422, 423, 424, 426, 428, 431, 451, 499],
  stopped: [410],
  throttled: [429, 503],
  transient: [408, 421, 425, 500, 501, 502, 504, 505, 507, 511, 520, 599],
}

function outcomeOf(word: string, status: number): object {
  if (word === 'delivered') return { status: 'delivered' }
  const code = `http_${status}`
  return word === 'rejected' ? { status: 'rejected', code } : { status: 'retry', because: word, code }
}

describe('a response', () => {
  for (const [outcome, statuses] of Object.entries(expected)) {
    it.each(statuses)(`means ${outcome} as %i`, (status) => {
      expect(classify(status)).toMatchObject(outcomeOf(outcome, status))
    })
  }

  it.each([
    ['120', 120_000],
    ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
    ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
  ])('with Retry-After "%s" asks for %i ms', (retryAfter, retryAfterMs) => {
    expect(classify(429, { retryAfter })).toMatchObject({ because: 'throttled', retryAfterMs })
    expect(classify(503, { retryAfter })).toMatchObject({ because: 'throttled', retryAfterMs })
    expect(classify(408, { retryAfter })).toMatchObject({ because: 'transient', retryAfterMs })
  })

  it.each([undefined, 'soon'])('with Retry-After %s leaves the wait to the outbox', (retryAfter) => {
    expect(classify(429, retryAfter === undefined ? {} : { retryAfter })).not.toHaveProperty('retryAfterMs')
  })

  it.each([
    ['https://user:s3cret@new.example:8443/hook?code=s3cret', 'and points to new.example:8443;'],
    ['/elsewhere?code=s3cret', 'and points to ops.example;'],
    ['mailto:s3cret@new.example', 'answered 302;'],
    ['https://[s3cret', 'answered 302;'],
  ])('that redirects to %s tells the host alone', (location, text) => {
    const outcome = classify(302, { location })
    expect(outcome).toMatchObject({ detail: expect.stringContaining(text) })
    expect(outcome).toMatchObject({ detail: expect.stringContaining('redirects are not followed') })
  })

  it('never tells the path, the query or a Location in full', () => {
    const all = Array.from({ length: 400 }, (_, index) => classify(200 + index, { location: 'https://new.example/s3cret?s3cret' }))
    expect(JSON.stringify(all)).not.toContain('s3cret')
  })
})
