import { describe, expect, it } from 'vitest'
import { observerOf, sourceOf } from '../../src/events/identity.ts'
import { identity, scaleSetId } from './sample-transition.ts'

const nobody = { ...identity, resourceId: null, scaleSetId: null, vmName: null }

describe('the source', () => {
  it.each([
    ['the scale set', identity, 'group', scaleSetId.toLowerCase()],
    ['the VM where there is no scale set', { ...identity, scaleSetId: null }, 'group', `${scaleSetId}/virtualMachines/0`.toLowerCase()],
    ['the VM in scope vm', identity, 'vm', `${scaleSetId}/virtualMachines/0`.toLowerCase()],
    ['the configured one', { ...identity, source: '/Contoso/Web' }, 'group', '/contoso/web'],
    ['the configured one in scope vm as well', { ...identity, source: '/Contoso/Web' }, 'vm', '/contoso/web'],
    ['the name alone', { ...nobody, vmName: 'Web_0' }, 'vm', '/unidentified/web_0'],
    ['nothing', nobody, 'group', '/unidentified/unknown'],
    [
      'letters that a URI cannot hold',
      { ...nobody, resourceId: '/resourceGroups/MÜnchen x/a%20b' },
      'vm',
      '/resourcegroups/m%c3%bcnchen%20x/a%20b',
    ],
  ] as const)('is %s', (_, known, scope, expected) => {
    expect(sourceOf(known, scope)).toBe(expected)
  })
})

describe('the observer', () => {
  it('is the ARM id as given, else the name, else nobody', () => {
    expect(observerOf(identity)).toBe(`${scaleSetId}/virtualMachines/0`)
    expect(observerOf({ ...identity, resourceId: null })).toBe('web_0')
    expect(observerOf(nobody)).toBeNull()
  })
})
