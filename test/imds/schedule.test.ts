import { assert, integer, property } from 'fast-check'
import { expect, test } from 'vitest'
import { intervalWarning, nextDue, delayAfterFailureMs } from '../../src/imds/schedule.ts'

test.each([
  ['a quick poll', { due: 1_000, startedAt: 1_000, now: 1_003 }, 2_000],
  ['a poll that began late', { due: 1_000, startedAt: 1_040, now: 1_050 }, 2_000],
  ['a poll that took half the interval', { due: 1_000, startedAt: 1_000, now: 1_500 }, 2_000],
  ['a poll that ended on the next due time', { due: 1_000, startedAt: 1_000, now: 2_000 }, 2_000],
  ['a poll that took three intervals and a bit', { due: 1_000, startedAt: 1_000, now: 4_200 }, 5_000],
  ['a poll so late that the next due time is near', { due: 1_000, startedAt: 1_900, now: 1_910 }, 3_000],
  ['a clock that was set forward', { due: 1_000, startedAt: 1_000, now: 3_600_500 }, 3_601_000],
  ['a clock that was set back', { due: 3_600_000, startedAt: 3_600_000, now: 500 }, 1_500],
])('After %s the next one keeps to the grid', (_, { due, startedAt, now }, expected) => {
  expect(nextDue(due, startedAt, now, 1_000)).toBe(expected)
})

test('The next due time is never past, never further off than one interval and a half, and on the grid while the clock runs forward', () => {
  const ms = integer({ min: 0, max: 10_000_000 })
  assert(
    property(ms, ms, ms, integer({ min: 100, max: 60_000 }), (due, late, took, intervalMs) => {
      const now = due + late + took
      const next = nextDue(due, due + late, now, intervalMs)
      expect(next).toBeGreaterThanOrEqual(now)
      expect(next).toBeLessThanOrEqual(now + 1.5 * intervalMs)
      expect((next - due) % intervalMs).toBe(0)
    }),
  )
})

test('The backoff doubles from the interval to at most 10 s', () => {
  expect([1, 2, 3, 4, 5, 6, 50, 5_000].map((failures) => delayAfterFailureMs(failures, 1_000, undefined, 0))).toEqual([
    1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000,
  ])
})

test('Chance takes up to a quarter off, but never below the interval', () => {
  expect(delayAfterFailureMs(3, 1_000, undefined, 0.999_999)).toBeCloseTo(3_000, 0)
  expect(delayAfterFailureMs(1, 1_000, undefined, 0.999_999)).toBe(1_000)
  expect(delayAfterFailureMs(50, 1_000, undefined, 0.5)).toBe(8_750)
  expect(delayAfterFailureMs(4, 60_000, undefined, 0.5)).toBe(60_000)
})

test('Retries never come closer than the budget of 5 requests per second allows', () => {
  expect(delayAfterFailureMs(1, 100, undefined, 0)).toBe(200)
  expect(delayAfterFailureMs(1, 100, 0, 0)).toBe(200)
})

test('Retry-After wins in both directions, up to 30 s', () => {
  expect(delayAfterFailureMs(1, 1_000, 7_000, 0.5)).toBe(7_000)
  expect(delayAfterFailureMs(9, 1_000, 3_000, 0.5)).toBe(3_000)
  expect(delayAfterFailureMs(1, 1_000, 0, 0.5)).toBe(1_000)
  expect(delayAfterFailureMs(1, 1_000, 3_600_000, 0.5)).toBe(30_000)
})

test.each([
  [100, /5 requests per second/],
  [249, /is 249/],
  [10_001, /Preempt/],
])('An interval of %d ms is warned of', (intervalMs, text) => {
  expect(intervalWarning(intervalMs)).toMatch(text)
})

test.each([250, 1_000, 10_000])('An interval of %d ms is nothing to warn of', (intervalMs) => {
  expect(intervalWarning(intervalMs)).toBeUndefined()
})
