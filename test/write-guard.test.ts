import { expect, it } from 'vitest'
import { ForeshockError } from '../sinks/error.ts'
import { createWriteGuard } from '../src/write-guard.ts'
import { captureLog } from './outbox/outbox-events.ts'

it('a store that fails is told once, and once when it works again; what is no failure of the store passes', () => {
  const log = captureLog()
  const guard = createWriteGuard(log)
  guard.attempt(full)
  guard.attempt(full)
  expect(guard.problem()).toBe('the disk is full')
  guard.attempt(() => {})
  guard.attempt(() => {})
  expect(guard.problem()).toBeNull()
  expect(log.lines.map(({ level }) => level)).toEqual(['error', 'info'])
  expect(() =>
    guard.attempt(() => {
      throw new TypeError('a fault of the program')
    }),
  ).toThrow('a fault of the program')
})

function full(): never {
  throw new ForeshockError('state_unusable', 'the disk is full')
}
