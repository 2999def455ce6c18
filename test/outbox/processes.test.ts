import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { delivered } from '../../sinks/contract.ts'
import { openDatabase } from '../../src/outbox/database.ts'
import { captureLog, outgoing, rejected } from './outbox-events.ts'
import { brokenLanes, dispatch, openOutbox, puppetSink, spawnProcess, temporaryFolder } from './outbox-fixture.ts'

const open = (path: string) => openDatabase(path, { now: Date.now, log: captureLog() })

it('one forwarder owns a state file; kill -9 gives it free', async () => {
  const path = join(temporaryFolder(), 'state.db')
  const other = spawnProcess('hold', path)
  expect(await other.next()).toBe('open')
  expect(() => open(path)).toThrow(
    expect.objectContaining({ code: 'state_locked', message: expect.stringMatching(/expected to be the only/) }),
  )
  await other.kill()
  open(path).close()
})

it('within one process too, until it is closed', () => {
  const path = join(temporaryFolder(), 'state.db')
  const first = open(path)
  expect(() => open(path)).toThrow(expect.objectContaining({ code: 'state_locked' }))
  first.close()
  first.close()
  open(path).close()
})

it('a lock file of somebody else is not taken for a running forwarder', () => {
  const path = join(temporaryFolder(), 'state.db')
  writeFileSync(`${path}.lock`, 'pid 42\n'.repeat(100))
  expect(() => open(path)).toThrow(expect.objectContaining({ code: 'state_unusable', message: expect.stringMatching(/delete it/) }))
})

it('killed between sending and settling: state and events are there, and what was in flight is sent again, first', async () => {
  const path = join(temporaryFolder(), 'state.db')
  const other = spawnProcess('deliver', path)
  expect(await other.next()).toBe('delivering')
  await other.kill()

  const outbox = openOutbox(path)
  expect(outbox.database.setAside).toBeUndefined()
  expect(outbox.store.readState('lifecycle')).toEqual({ epoch: 7 })
  expect(outbox.store.list()).toMatchObject([
    { id: 'first', state: 'pending', attempts: 0 },
    { id: 'second', state: 'pending', attempts: 0 },
  ])
  expect(brokenLanes(outbox.database)).toEqual([])
  const sink = puppetSink(() => delivered)
  const dispatcher = dispatch(outbox, { sink })
  expect(await dispatcher.drain({ signal: AbortSignal.timeout(10_000) })).toBe(true)
  expect(sink.calls.map(({ id }) => id)).toEqual(['first', 'second'])
})

it('a replay by another process is noticed by the running dispatcher', async () => {
  const outbox = openOutbox()
  const sink = puppetSink((_, count) => (count === 1 ? rejected : delivered))
  const dispatcher = dispatch(outbox, { sink })
  outbox.store.commit({ events: [outgoing('e')] })
  dispatcher.start()
  await dispatcher.whenSettled(1)
  expect(outbox.store.list({ states: ['dead'] })).toMatchObject([{ id: 'e', lastCode: 'http_400' }])
  expect(await spawnProcess('replay', outbox.path).next()).toBe('1')
  await dispatcher.whenSettled(2)
  expect(outbox.store.list()).toMatchObject([{ id: 'e', state: 'delivered', attempts: 1 }])
})
