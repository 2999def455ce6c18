import { describe, expect, it } from 'vitest'
import { isFirstResource, namesThisVm } from '../../src/lifecycle/names.ts'

describe('namesThisVm', () => {
  it.each([
    [['web_1'], 'web_1', true],
    [['WEB_1'], 'web_1', true],
    [['_web_1'], 'web_1', true],
    [['web_1'], '_Web_1', true],
    [['__web_1'], 'web_1', false],
    [['web_10'], 'web_1', false],
    [['web_1'], 'web_10', false],
    [['web_0', 'web_1'], 'web_1', true],
    [[], 'web_1', null],
    [['web_1'], null, null],
  ])('%j and %j: %j', (resources, vmName, expected) => {
    expect(namesThisVm(resources, vmName)).toBe(expected)
  })
})

describe('isFirstResource', () => {
  it.each([
    [['_web_0', 'web_1'], 'WEB_0', true],
    [['web_0', 'web_1'], 'web_1', false],
    [[], 'web_1', null],
    [['web_0'], null, null],
  ])('%j and %j: %j', (resources, vmName, expected) => {
    expect(isFirstResource(resources, vmName)).toBe(expected)
  })
})
