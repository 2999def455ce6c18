import { expect, test } from 'vitest'
import { failure } from '../../src/imds/failure.ts'
import { trackHealth } from '../../src/imds/health.ts'

const refused = failure('refused', 'nobody there')
const busy = failure('http_status', 'got 429')

test('The first two minutes without an answer are warming up, then failing', () => {
  const health = trackHealth(1_000, 10)
  expect(health.at(1_000)).toEqual({ state: 'warming-up', since: 1_000 })
  expect(health.at(120_999)).toMatchObject({ state: 'warming-up' })
  expect(health.at(121_000)).toEqual({
    state: 'failing',
    since: 1_000,
    failures: 0,
    lastReason: 'timeout',
    detail: 'no answer to the first request yet',
  })
})

test('Failures while warming up are told, but nothing is unreachable before it is over', () => {
  const health = trackHealth(0, 2)
  expect(health.failed(refused, 10).map(({ kind }) => kind)).toEqual(['failing'])
  expect(health.failed(refused, 20)).toEqual([])
  expect(health.failed(refused, 30)).toEqual([])
  expect(health.at(40)).toMatchObject({ state: 'warming-up', since: 0, trouble: { since: 10, failures: 3 } })
  expect(health.at(120_000)).toMatchObject({ state: 'failing', since: 10, failures: 3 })
  expect(health.failed(refused, 121_000)).toMatchObject([{ kind: 'unreachable', since: 10, failures: 4 }])
  expect(health.at(121_000)).toMatchObject({ state: 'unreachable' })
})

test('A success ends the warming up for good', () => {
  const health = trackHealth(0, 1)
  expect(health.succeeded(10)).toEqual([])
  expect(health.at(10)).toEqual({ state: 'ok', since: 10 })
  expect(health.succeeded(20)).toEqual([])
  expect(health.at(20)).toEqual({ state: 'ok', since: 10 })
  expect(health.failed(refused, 30).map(({ kind }) => kind)).toEqual(['failing', 'unreachable'])
  expect(health.at(30)).toEqual({ state: 'unreachable', since: 30, failures: 1, lastReason: 'refused', detail: 'nobody there' })
})

test('Each reason is told once in a row of failures, unreachable once, and the recovery with how long and how many', () => {
  const health = trackHealth(0, 3)
  health.succeeded(0)
  const kinds = [refused, refused, busy, refused, busy].map((what, index) => health.failed(what, 100 + index).map(({ kind }) => kind))
  expect(kinds).toEqual([['failing'], [], ['failing', 'unreachable'], [], []])
  expect(health.succeeded(1_100)).toEqual([
    { kind: 'recovered', at: 1_100, since: 100, durationMs: 1_000, failures: 5, wasUnreachable: true },
  ])
  expect(health.at(1_200)).toEqual({ state: 'ok', since: 1_100 })

  expect(health.failed(refused, 1_300)).toEqual([
    { kind: 'failing', at: 1_300, since: 1_300, failures: 1, lastReason: 'refused', detail: 'nobody there' },
  ])
  expect(health.succeeded(1_400)).toMatchObject([{ kind: 'recovered', failures: 1, wasUnreachable: false }])
})
