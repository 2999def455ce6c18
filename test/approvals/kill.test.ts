import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { digestOf } from '../../src/lifecycle/digest.ts'
import { attachDatabase } from '../../src/outbox/database.ts'
import { createStore } from '../../src/outbox/store.ts'
import { openNamespace } from '../simulator/broker/namespace.ts'
import { play, scenarioOf } from '../simulator/imds/play.ts'
import { approval, controlOf, eventId, reboot } from './stage.ts'

/** A queue whose locks run out soon, an IMDS, and a place for the state file. */
async function setUp() {
  const namespace = await openNamespace({ queues: [{ name: 'approvals', lockSeconds: 0.5 }] })
  const imds = await play(scenarioOf({ vms: [{ name: 'web_0' }], events: [reboot] }))
  const folder = mkdtempSync(join(tmpdir(), 'foreshock-kill-'))
  const config = JSON.stringify({
    imds: { endpoint: imds.url },
    state: { path: join(folder, 'state.db') },
    sinks: [{ name: 'never', type: 'stdout' }],
    control: controlOf(namespace),
  })
  return {
    namespace,
    imds,
    send: (body: unknown) => namespace.serviceBus().createSender('approvals').sendMessages({ body, messageId: 'm-1' }),
    start: (step: string) => {
      const child = spawn(process.execPath, [fileURLToPath(new URL('approver-process.ts', import.meta.url)), config, step], {
        stdio: ['ignore', 'inherit', 'inherit'],
      })
      const ended = once(child, 'exit')
      return { kill: () => child.kill('SIGKILL'), ended }
    },
    /** What was told of approvals, from the outbox on the disk. */
    outcomes: () => {
      const database = attachDatabase(join(folder, 'state.db'))
      const store = createStore(database, { now: Date.now })
      const told = store.list().filter(({ type }) => type.includes('.approval.'))
      const codes = told.map(({ id }) => store.show(id)[0]?.event?.data['code'])
      database.close()
      return codes
    },
    async [Symbol.asyncDispose]() {
      await namespace[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilEmpty(count: () => number): Promise<void> {
  while (count() > 0) await sleep(20)
}

test.each([
  ['received', 1],
  ['record', 1],
  ['recorded', 1],
  ['posted', 2],
  ['outcome', 1],
])('kill -9 at "%s": one outcome in the end, %i POST in all, and the message is gone', async (step, posts) => {
  await using stage = await setUp()
  const first = stage.start(step)
  await stage.send(approval())
  await first.ended
  const second = stage.start('none')
  await untilEmpty(() => stage.namespace.broker.count('approvals'))
  second.kill()
  await second.ended
  expect(stage.outcomes()).toEqual(['ok'])
  expect(stage.imds.posts.map(({ status }) => status)).toEqual(Array.from({ length: posts }, () => 200))
  expect(stage.namespace.broker.count('approvals/$DeadLetterQueue')).toBe(0)
})

test.each([
  ['recorded', 0],
  ['posted', 1],
])('kill -9 at "%s", and the event is another one when the process is back: no further POST', async (step, posts) => {
  await using stage = await setUp()
  const entry = {
    EventId: eventId,
    EventType: 'Reboot',
    EventStatus: 'Scheduled',
    Resources: ['web_0'],
    NotBefore: 'Mon, 21 Dec 2026 10:00:00 GMT',
  }
  stage.imds.setDocument({ DocumentIncarnation: 2, Events: [entry] })
  const seen = {
    eventType: 'Reboot',
    eventStatus: 'Scheduled',
    eventSource: null,
    notBefore: '2026-12-21T10:00:00Z',
    resources: ['web_0'],
    durationInSeconds: null,
  }
  const first = stage.start(step)
  await stage.send(approval({ digest: digestOf(seen) }))
  await first.ended
  stage.imds.setDocument({ DocumentIncarnation: 3, Events: [{ ...entry, NotBefore: 'Mon, 21 Dec 2026 11:00:00 GMT' }] })
  const second = stage.start('none')
  await untilEmpty(() => stage.namespace.broker.count('approvals'))
  second.kill()
  await second.ended
  expect(stage.outcomes()).toEqual(['state_changed'])
  expect(stage.imds.posts).toHaveLength(posts)
})
