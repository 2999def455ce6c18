import { describe, expect, it } from 'vitest'
import { forwarderId, partitionKey, transitionId } from '../../src/events/ids.ts'
import { endTransition, sampleEvent, stateTransition } from './sample-transition.ts'

const vmId = '02aab8a4-74ef-476e-8182-f6d2ba4166a6'
const id = 'c7061bac-afdc-4513-b24b-aa5f13a16123'

const ofLength = (length: number) => transitionId(endTransition({ event: sampleEvent({ eventId: 'x'.repeat(length) }) }), null)
const worst = (generation: number) =>
  transitionId(
    stateTransition({ status: 's'.repeat(20), generation, repeat: generation, event: sampleEvent({ eventId: 'x'.repeat(40) }) }),
    vmId,
  )

describe('the id of a transition', () => {
  it.each([
    ['a state', stateTransition(), null, `${id}:scheduled:1d105773e80d3ccc`],
    ['an end', endTransition(), null, `${id}:ended`],
    ['an end, whatever its outcome', endTransition({ outcome: 'vanished' }), null, `${id}:ended`],
    ['a later generation', stateTransition({ generation: 2 }), null, `${id}:scheduled:1d105773e80d3ccc:g2`],
    ['the end of a later generation', endTransition({ generation: 3 }), null, `${id}:ended:g3`],
    ['a state that came back', stateTransition({ repeat: 2 }), null, `${id}:scheduled:1d105773e80d3ccc:r2`],
    ['both', stateTransition({ generation: 2, repeat: 3 }), null, `${id}:scheduled:1d105773e80d3ccc:g2:r3`],
    ['scope vm', stateTransition(), vmId, `${id}:scheduled:1d105773e80d3ccc@${vmId}`],
    ['all of it', stateTransition({ generation: 2, repeat: 2 }), vmId, `${id}:scheduled:1d105773e80d3ccc:g2:r2@${vmId}`],
    ['an end in scope vm', endTransition(), vmId, `${id}:ended@${vmId}`],
  ])('of %s', (_, transition, observer, expected) => {
    expect(transitionId(transition, observer)).toBe(expected)
  })

  it('hashes an EventId of more than 40 characters', () => {
    expect(ofLength(40)).toBe(`${'x'.repeat(40)}:ended`)
    expect(ofLength(41)).toBe('sha256-3164596df4fdd018b2c567ec8c03e79b:ended')
  })

  it('never exceeds 128 characters, and stays distinct', () => {
    expect(worst(999)).toHaveLength(125)
    expect(worst(999_999)).toMatch(/^sha256-[0-9a-f]{64}$/)
    expect(worst(999_999)).not.toBe(worst(999_998))
  })
})

describe('other keys', () => {
  it('an event about the forwarder is named by kind, moment and machine', () => {
    expect(forwarderId('heartbeat', '2026-05-21T10:00:00.000Z', vmId)).toBe(`heartbeat:2026-05-21T10:00:00.000Z@${vmId}`)
  })

  it('a partition key is the EventId, hashed where a broker would refuse it', () => {
    expect(partitionKey(id)).toBe(id)
    expect(partitionKey('x'.repeat(129))).toMatch(/^sha256-[0-9a-f]{32}$/)
  })
})
