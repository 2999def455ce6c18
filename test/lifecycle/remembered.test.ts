import { describe, expect, it } from 'vitest'
import { emptyState, markApproved, rememberedStateSchema } from '../../src/lifecycle/remembered.ts'
import { entry, key, started, Watcher } from './watcher.ts'

describe('the remembered state', () => {
  it('survives being stored as JSON', () => {
    const watcher = new Watcher()
    watcher.poll('abc', [
      entry({ DurationInSeconds: 'long' }),
      entry({ EventId: '2' }, started),
      entry({ EventId: '3', EventStatus: 'Completed' }),
    ])
    expect(Object.keys(watcher.state.live)).toHaveLength(2)
    expect(rememberedStateSchema.parse(JSON.parse(JSON.stringify(watcher.state)))).toEqual(watcher.state)
    expect(rememberedStateSchema.parse(JSON.parse(JSON.stringify(emptyState)))).toEqual(emptyState)
  })

  it.each([{}, { ...emptyState, epoch: 'one' }, { ...emptyState, live: { a: {} } }])(
    'is refused where it is something else: %j',
    (stored) => {
      expect(rememberedStateSchema.safeParse(stored).success).toBe(false)
    },
  )
})

describe('markApproved', () => {
  it('marks a live event by its id in any case, for the rest of its life', () => {
    const watcher = new Watcher()
    watcher.poll(1, [entry()])
    watcher.state = markApproved(watcher.state, key.toUpperCase())
    watcher.poll(2, [entry({ DurationInSeconds: 1 })])
    expect(watcher.state.live[key]?.approved).toBe(true)
    watcher.poll(3, [])
    watcher.poll(4, [entry()])
    expect(watcher.state.live[key]?.approved).toBe(false)
  })

  it.each(['unknown', 'constructor'])('leaves the state alone for %s, which is not live', (id) => {
    expect(markApproved(emptyState, id)).toBe(emptyState)
  })
})
