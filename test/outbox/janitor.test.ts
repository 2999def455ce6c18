import { expect, it, onTestFinished } from 'vitest'
import { createJanitor } from '../../src/outbox/janitor.ts'
import { outgoing } from './outbox-events.ts'
import { openOutbox } from './outbox-fixture.ts'

it('tells everything that it takes out, however much it is', async () => {
  const { store, log, clock, database } = openOutbox()
  store.commit({ events: Array.from({ length: 700 }, (_, index) => outgoing(`${index}`, { sinks: ['gone'], expiresAt: clock.now() })) })
  const counted = new Map<string, number>()
  const { promise: allExpired, resolve } = Promise.withResolvers<void>()
  const janitor = createJanitor({
    store,
    log,
    onPruned(sink, state, count) {
      const key = `${sink} ${state}`
      counted.set(key, (counted.get(key) ?? 0) + count)
      if (counted.get('gone pending') === 700) resolve()
    },
  })
  onTestFinished(() => janitor.close())
  janitor.start()
  janitor.start()
  await allExpired
  expect(log.lines.filter(({ level, fields }) => level === 'warn' && fields['code'] === 'expired')).toHaveLength(700)
  janitor.close()

  clock.offsetMs += 31 * 24 * 60 * 60 * 1000
  const { promise: allRemoved, resolve: removed } = Promise.withResolvers<void>()
  const later = createJanitor({ store, log, onPruned: () => void (store.summarize().length === 0 && removed()) })
  onTestFinished(() => later.close())
  later.start()
  await allRemoved
  expect(database.db.get('SELECT count(*) AS n FROM events')).toEqual({ n: 0 })
})
