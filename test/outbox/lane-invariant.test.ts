import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { outgoing } from './outbox-events.ts'
import { brokenLanes, openOutbox } from './outbox-fixture.ts'

const sinks = ['a', 'b']
const pick = fc.nat({ max: 1000 })

/** Everything that can befall the outbox. `row` picks one of the rows that are in flight, or that exist. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('commit' as const), lane: fc.constantFrom('x', 'y', 'z'), urgent: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const), sink: fc.constantFrom(...sinks) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('delivered' as const, 'retry' as const, 'dead' as const), row: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('replay' as const, 'drop' as const), row: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('replay all' as const, 'prune' as const, 'drop dead' as const) }) },
)

it('whatever happens in whatever order, each lane of each sink has exactly one armed row: its first', () => {
  const { store, clock, database } = openOutbox()
  let number = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => {
      store.drop({})
      /** Rows that were due once and whose outcome is still to come: meanwhile anything may happen to them. */
      let inFlight: { sink: string; seq: number; lane: string }[] = []
      for (const each of steps) {
        switch (each.do) {
          case 'commit': {
            number += 1
            const expiresAt = clock.now() + (number % 5 === 0 ? -1 : 3_600_000)
            store.commit({ events: [outgoing(`${number}`, { lane: each.lane, sinks, priority: each.urgent ? 1 : 0, expiresAt })] })
            break
          }
          case 'start':
            inFlight.push(...store.due(each.sink, clock.now(), 2).map(({ seq, lane }) => ({ sink: each.sink, seq, lane })))
            break
          case 'delivered':
          case 'retry':
          case 'dead': {
            const row = inFlight[each.row % Math.max(1, inFlight.length)]
            if (row === undefined) break
            inFlight = inFlight.filter((other) => other !== row)
            const failure = { code: 'c', detail: 'd', nextAttemptAt: clock.now() + (each.row % 3) - 1, attempted: true }
            store.settle(row.sink, [{ ...failure, seq: row.seq, lane: row.lane, status: each.do }])
            break
          }
          case 'replay':
          case 'drop': {
            const rows = store.list()
            const row = rows[each.row % Math.max(1, rows.length)]
            if (row === undefined) break
            if (each.do === 'replay') store.replay({ id: row.id, sink: row.sink })
            else store.drop({ id: row.id, sink: row.sink })
            break
          }
          case 'replay all':
            store.replay({})
            break
          case 'prune':
            store.prune()
            break
          case 'drop dead':
            store.drop({ state: 'dead' })
        }
        expect(brokenLanes(database)).toEqual([])
      }
      expect(database.db.all('SELECT seq FROM events WHERE seq NOT IN (SELECT seq FROM deliveries)')).toEqual([])
    }),
    { numRuns: 60 },
  )
}, 60_000)
