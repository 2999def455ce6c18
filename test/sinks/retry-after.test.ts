import { expect, test } from 'vitest'
import { parseRetryAfter } from '../../sinks/retry-after.ts'

const now = Date.parse('1994-11-06T08:49:07Z')

test.each([
  ['0', 0],
  ['7', 7_000],
  [' 120 ', 120_000],
  ['99999999999999999999', Number.MAX_SAFE_INTEGER],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
  ['Sun Nov  6 08:49:37 1994', 30_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
])('%j is %d ms', (value, ms) => {
  expect(parseRetryAfter(value, now)).toBe(ms)
})

test.each([
  undefined,
  '',
  '-1',
  '1.5',
  '5 s',
  'soon',
  '1994-11-06T08:49:37Z',
  'Sun, 99 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37 CET',
])('%j says nothing', (value) => {
  expect(parseRetryAfter(value, now)).toBeUndefined()
})

test('Two digits of a year mean the nearest century that is at most 50 years ahead', () => {
  expect(parseRetryAfter('Tuesday, 01-Jan-30 00:00:10 GMT', Date.parse('2030-01-01T00:00:00Z'))).toBe(10_000)
  expect(parseRetryAfter('Friday, 01-Jan-99 00:00:10 GMT', Date.parse('2030-01-01T00:00:00Z'))).toBe(0)
})
