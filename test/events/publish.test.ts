import { describe, expect, it } from 'vitest'
import { publishes } from '../../src/events/publish.ts'
import { endTransition, sampleEvent, stateTransition } from './sample-transition.ts'

const about = (...resources: string[]) => stateTransition({ event: sampleEvent({ resources }) })

describe('publish', () => {
  it.each([
    ['all', about('web_1'), 'web_0', true],
    ['own', about('web_0', 'web_1'), 'WEB_1', true],
    ['own', about('web_0', 'web_1'), 'web_2', false],
    ['own', endTransition({ event: sampleEvent({ resources: ['web_0'] }) }), 'web_0', true],
    ['own', endTransition({ event: sampleEvent({ resources: ['web_0'] }) }), 'web_1', false],
    ['leader', about('web_0', 'web_1'), 'web_0', true],
    ['leader', about('web_0', 'web_1'), 'web_1', false],
  ] as const)('%s: case %#', (mode, transition, vmName, expected) => {
    expect(publishes(mode, transition, vmName)).toBe(expected)
  })

  it.each(['own', 'leader'] as const)('%s does not fall silent where the name or the resources are unknown', (mode) => {
    expect(publishes(mode, about('web_0'), null)).toBe(true)
    expect(publishes(mode, about(), 'web_0')).toBe(true)
  })

  it('own tells a VM that it is no longer among the resources', () => {
    const moved = stateTransition({
      event: sampleEvent({ resources: ['web_1'] }),
      changes: [{ field: 'resources', from: ['web_0'], to: ['web_1'] }],
    })
    expect(publishes('own', moved, 'web_0')).toBe(true)
    expect(publishes('own', moved, 'web_2')).toBe(false)
  })
})
