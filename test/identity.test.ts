import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createIdentity, type IdentityOptions } from '../src/identity.ts'
import { captureLog } from './outbox/outbox-events.ts'
import { web0 } from './support/identity.ts'

function keeping(overrides: Partial<Omit<IdentityOptions, 'log'>>) {
  const clock = { at: 1_000_000 }
  const log = captureLog()
  const keeper = createIdentity({
    read: async () => ({ ok: false, detail: 'no answer' }),
    configured: {},
    remembered: null,
    now: () => clock.at,
    log,
    ...overrides,
  })
  onTestFinished(() => keeper.stop())
  return { keeper, clock, log }
}

describe('who this VM is', () => {
  it('comes from instance metadata', async () => {
    const { keeper } = keeping({ read: async () => ({ ok: true, identity: web0 }) })
    expect(keeper.current()).toBeNull()
    keeper.start()
    await vi.waitFor(() => expect(keeper.current()).toEqual(web0))
  })

  it('is what the configuration says, where it says something', async () => {
    const { keeper } = keeping({
      read: async () => ({ ok: true, identity: web0 }),
      configured: { source: 'urn:lab', vmName: 'bench' },
    })
    keeper.start()
    await vi.waitFor(() => expect(keeper.current()).toEqual({ ...web0, source: 'urn:lab', vmName: 'bench' }))
  })

  it('is what was remembered, two seconds after a first document asked', () => {
    const { keeper, clock } = keeping({ remembered: web0 })
    keeper.start()
    clock.at += 60_000
    expect(keeper.decide()).toBeNull()
    clock.at += 1_999
    expect(keeper.decide()).toBeNull()
    clock.at += 1
    expect(keeper.decide()).toEqual(web0)
    expect(keeper.read()).toBeNull()
  })

  it('is decided by documents alone: looking on changes nothing', () => {
    const { keeper, clock } = keeping({ remembered: web0 })
    for (let second = 0; second < 60; second++) {
      clock.at += 1000
      expect(keeper.current()).toBeNull()
      expect(keeper.best()).toEqual(web0)
    }
    expect(keeper.decide()).toBeNull()
  })

  it('is said to be unknown after ten seconds, so that a Preempt is not held back for ever', () => {
    const { keeper, clock, log } = keeping({})
    keeper.start()
    expect(keeper.decide()).toBeNull()
    clock.at += 10_000
    expect(keeper.decide()).toMatchObject({ vmName: null, vmId: null, source: null })
    expect(log.lines.some(({ message }) => message.includes('set identity.source'))).toBe(true)
    expect(keeper.read()).toBeNull()
  })

  it('is corrected by metadata that comes late', async () => {
    const answer = Promise.withResolvers<{ ok: true; identity: typeof web0 }>()
    const { keeper, clock } = keeping({ read: () => answer.promise })
    keeper.start()
    keeper.decide()
    clock.at += 10_000
    expect(keeper.decide()?.vmName).toBeNull()
    answer.resolve({ ok: true, identity: web0 })
    await vi.waitFor(() => expect(keeper.current()).toEqual(web0))
    expect(keeper.read()).toEqual(web0)
  })

  it('stops at once while metadata is awaited', async () => {
    const { keeper } = keeping({
      read: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    keeper.start()
    await keeper.stop()
    await keeper.stop()
    expect(keeper.current()).toBeNull()
  })
})
