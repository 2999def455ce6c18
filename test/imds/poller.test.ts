import assert from 'node:assert/strict'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { EventsResult, RequestOptions } from '../../src/imds/client.ts'
import { failure, type Failure } from '../../src/imds/failure.ts'
import type { HealthChange } from '../../src/imds/health.ts'
import { createPoller, type Poller, type PollerOptions } from '../../src/imds/poller.ts'
import type { EventsDocument } from '../../src/lifecycle/model.ts'

const start = Date.parse('2024-01-01T00:00:00Z')
const quiet: EventsDocument = { incarnation: 1, events: [], broken: [] }
const other: EventsDocument = { incarnation: 2, events: [], broken: [] }
const refused = failure('refused', 'nobody there')
const ok: EventsResult = { kind: 'document', document: quiet, changed: true }

interface Rig {
  readonly poller: Poller
  /** When each request began, in ms since the start. */
  readonly polls: number[]
  readonly timeouts: (number | undefined)[]
  readonly documents: [incarnation: EventsDocument['incarnation'], changed: boolean, at: number][]
  readonly health: HealthChange[]
  readonly lines: string[]
  /** The most requests that were under way at once. */
  readonly mostAtOnce: () => number
}

const rigs: Rig[] = []
beforeEach(() => {
  vi.useFakeTimers({ now: start })
})
afterEach(async () => {
  await Promise.all(rigs.splice(0).map(({ poller }) => poller.stop()))
  assert.equal(vi.getTimerCount(), 0, 'a timer is left behind')
  vi.useRealTimers()
})

/** A poller over a made-up IMDS: `answer` gives the n-th (from 1) result and how many ms it takes. */
function rig(answer: (n: number) => { result: EventsResult; tookMs?: number }, options: Partial<PollerOptions> = {}): Rig {
  const polls: number[] = []
  const timeouts: (number | undefined)[] = []
  const documents: Rig['documents'] = []
  const health: HealthChange[] = []
  const lines: string[] = []
  let underWay = 0
  let most = 0
  const getEvents = ({ signal, timeoutMs }: RequestOptions = {}): Promise<EventsResult> => {
    polls.push(Date.now() - start)
    timeouts.push(timeoutMs)
    underWay += 1
    most = Math.max(most, underWay)
    const { result, tookMs = 5 } = answer(polls.length)
    return new Promise<EventsResult>((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort)
        resolve(result)
      }, tookMs)
      signal?.addEventListener('abort', abort, { once: true })
    }).finally(() => {
      underWay -= 1
    })
  }
  const write = (_: object, message: string): void => {
    lines.push(message)
  }
  const poller = createPoller({
    client: { getEvents },
    intervalMs: 1_000,
    now: Date.now,
    random: () => 0,
    log: { info: write, warn: write },
    onDocument: (document, changed, at) => {
      documents.push([document.incarnation, changed, at - start])
    },
    onHealth: (change) => {
      health.push(change)
    },
    ...options,
  })
  const made = { poller, polls, timeouts, documents, health, lines, mostAtOnce: () => most }
  rigs.push(made)
  return made
}

const always =
  (result: EventsResult, tookMs = 5) =>
  (): { result: EventsResult; tookMs: number } => ({ result, tookMs })

test('The cadence is fixed and does not drift with the time that polls take', async () => {
  const { poller, polls } = rig(always(ok, 30))
  poller.start()
  await vi.advanceTimersByTimeAsync(60_500)
  expect(polls).toEqual(Array.from({ length: 61 }, (_, n) => n * 1_000))
})

test('A slow answer lets due times pass: they are left out, not made up for, and no two requests are under way at once', async () => {
  const { poller, polls, mostAtOnce } = rig((n) => ({ result: ok, tookMs: n === 2 ? 3_400 : 5 }))
  poller.start()
  void poller.pollOnce()
  await vi.advanceTimersByTimeAsync(7_100)
  expect(polls).toEqual([0, 1_000, 5_000, 6_000, 7_000])
  expect(mostAtOnce()).toBe(1)
})

test('The first answer may take 130 s, every later one 10 s', async () => {
  const { poller, timeouts } = rig((n) => ({ result: n < 3 ? refused : ok }))
  poller.start()
  await vi.advanceTimersByTimeAsync(5_500)
  expect(timeouts).toEqual([130_000, 130_000, 130_000, 10_000, 10_000])
})

test('Failures are followed by a doubling wait, a success by the cadence again', async () => {
  const { poller, polls } = rig((n) => ({ result: n <= 6 ? refused : ok }))
  poller.start()
  await vi.advanceTimersByTimeAsync(38_000)
  expect(polls.map((at) => Math.round(at / 100) / 10)).toEqual([0, 1, 3, 7, 15, 25, 35.0, 36.0, 37.0])
})

test('Retry-After is waited out', async () => {
  const { poller, polls } = rig((n) => ({
    result: n === 1 ? { ...failure('http_status', 'got 429'), status: 429, retryAfterMs: 20_000 } : ok,
  }))
  poller.start()
  await vi.advanceTimersByTimeAsync(21_500)
  expect(polls).toEqual([0, 20_005, 21_005])
})

test('A machine that was suspended while it waited polls within a second of waking', async () => {
  const throttled: Failure = { ...failure('http_status', 'got 410'), status: 410, retryAfterMs: 70_000 }
  const { poller, polls } = rig((n) => ({ result: n === 1 ? throttled : ok }))
  poller.start()
  await vi.advanceTimersByTimeAsync(2_500)
  // Timers stand still, the clock goes on.
  vi.setSystemTime(start + 3_600_000)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(polls).toHaveLength(2)
  expect(polls[1]).toBeGreaterThanOrEqual(3_600_000)
})

test('A clock that is set back does not stop the polling', async () => {
  const { poller, polls } = rig(always(ok))
  poller.start()
  await vi.advanceTimersByTimeAsync(2_500)
  vi.setSystemTime(start - 86_400_000)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(polls.length).toBeGreaterThanOrEqual(7)
})

test('A document is told as changed until the handler has taken it', async () => {
  let fail = true
  const seen: boolean[] = []
  const { poller } = rig((n) => ({ result: { kind: 'document', document: n < 4 ? quiet : other, changed: false } }), {
    onDocument: (_, changed) => {
      seen.push(changed)
      if (!fail) return
      fail = false
      throw new Error('disk full')
    },
  })
  const once = (): Promise<EventsResult> => {
    const polled = poller.pollOnce()
    polled.catch(() => {})
    return vi.advanceTimersByTimeAsync(5).then(() => polled)
  }
  await expect(once()).rejects.toThrow('disk full')
  await once()
  await once()
  await once()
  expect(seen).toEqual([true, true, false, true])
})

test('What a handler throws ends the poller and is told by finished', async () => {
  const { poller, polls } = rig(always(ok), {
    onDocument: () => Promise.reject(new Error('disk full')),
  })
  const finished = Promise.allSettled([poller.finished])
  poller.start()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await finished).toMatchObject([{ status: 'rejected', reason: { message: 'disk full' } }])
  expect(polls).toHaveLength(1)
})

test('The next poll waits for the handler', async () => {
  const { poller, polls } = rig(always(ok), { onDocument: () => new Promise((resolve) => setTimeout(resolve, 1_500)) })
  poller.start()
  await vi.advanceTimersByTimeAsync(4_500)
  expect(polls).toEqual([0, 2_000, 4_000])
  const stopped = poller.stop()
  await vi.advanceTimersByTimeAsync(1_500)
  await stopped
})

test('Trouble is told with one line a reason, and its end with one; all else is silent', async () => {
  const { poller, lines, health } = rig(
    (n) => ({ result: n <= 2 || n > 6 ? ok : n === 4 ? failure('timeout', 'nothing came') : refused }),
    { unreachableAfterFailures: 4 },
  )
  poller.start()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toEqual([
    'IMDS gives no document: nobody there; polling goes on',
    'IMDS gives no document: nothing came; polling goes on',
    'IMDS is unreachable after 4 failures in a row',
    'IMDS answers again after 15.0 s',
  ])
  expect(health.map(({ kind }) => kind)).toEqual(['failing', 'failing', 'unreachable', 'recovered'])
  expect(health.at(-1)).toMatchObject({ failures: 4, wasUnreachable: true })
  expect(poller.health()).toMatchObject({ state: 'ok' })
})

test('pollOnce works without start, and joins a request that is under way', async () => {
  const { poller, polls, documents } = rig(always(ok, 500))
  const both = Promise.all([poller.pollOnce(), poller.pollOnce()])
  await vi.advanceTimersByTimeAsync(500)
  const [one, two] = await both
  expect(two).toBe(one)
  expect(polls).toEqual([0])
  expect(documents).toEqual([[1, true, 500]])
})

test('An abort of pollOnce ends only the wait of its caller', async () => {
  const { poller, documents } = rig(always(ok, 500))
  const leave = new AbortController()
  const impatient = Promise.allSettled([poller.pollOnce({ signal: leave.signal })])
  leave.abort(new Error('enough'))
  expect(await impatient).toMatchObject([{ status: 'rejected', reason: { message: 'enough' } }])
  await expect(poller.pollOnce({ signal: leave.signal })).rejects.toThrow('enough')
  await vi.advanceTimersByTimeAsync(500)
  expect(documents).toHaveLength(1)
})

test('Stopping ends the request under way, resolves finished, is idempotent and for good', async () => {
  const { poller, polls, documents } = rig(always(ok, 5_000))
  poller.start()
  poller.start()
  const joined = Promise.allSettled([poller.pollOnce()])
  await vi.advanceTimersByTimeAsync(100)
  await Promise.all([poller.stop(), poller.stop()])
  await poller.finished
  expect(await joined).toMatchObject([{ status: 'rejected', reason: { name: 'AbortError' } }])
  poller.start()
  await vi.advanceTimersByTimeAsync(10_000)
  await expect(poller.pollOnce()).rejects.toHaveProperty('name', 'AbortError')
  expect(polls).toEqual([0])
  expect(documents).toEqual([])
})

test('Stopping while it waits, or before it started, leaves nothing behind', async () => {
  const waiting = rig(always(ok))
  waiting.poller.start()
  await vi.advanceTimersByTimeAsync(500)
  await waiting.poller.stop()
  const fresh = rig(always(ok))
  await fresh.poller.stop()
  await fresh.poller.finished
  expect(vi.getTimerCount()).toBe(0)
})
