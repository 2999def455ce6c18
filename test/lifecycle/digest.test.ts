import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../src/lifecycle/canonical-json.ts'
import { digest16, digestOf } from '../../src/lifecycle/digest.ts'
import { sampleEvent } from '../events/sample-transition.ts'

describe('canonicalJson', () => {
  it('writes the published vector', () => {
    const { durationInSeconds, eventSource, eventStatus, eventType, notBefore, resources } = sampleEvent()
    expect(canonicalJson({ resources, notBefore, eventType, eventStatus, eventSource, durationInSeconds })).toBe(
      '{"durationInSeconds":-1,"eventSource":"Platform","eventStatus":"Scheduled","eventType":"Reboot","notBefore":"2016-09-19T18:29:47Z","resources":["BackEnd_IN_0","FrontEnd_IN_0"]}',
    )
  })

  // The examples of RFC 8785, sections 3.2.2 and 3.2.3.
  it('writes numbers, strings and literals as RFC 8785 has them', () => {
    const value = {
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it('sorts keys by UTF-16 code unit', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '😀': 5, '\u0080': 6, ö: 7 }
    expect(Object.values(JSON.parse(canonicalJson(value)))).toHaveLength(7)
    expect(canonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  it('leaves out what is undefined', () => {
    expect(canonicalJson({ a: undefined, b: [] })).toBe('{"b":[]}')
  })
})

describe('the digest', () => {
  it('of the published vector is 1d105773e80d3ccc', () => {
    expect(digest16(sampleEvent())).toBe('1d105773e80d3ccc')
    expect(digestOf(sampleEvent())).toMatch(/^1d105773e80d3ccc[0-9a-f]{48}$/)
  })

  it('knows no order of resources and no field beside the six', () => {
    expect(
      digest16(sampleEvent({ resources: ['FrontEnd_IN_0', 'BackEnd_IN_0'], description: 'x', resourceType: null, eventId: 'y' })),
    ).toBe('1d105773e80d3ccc')
  })

  it.each([
    { eventType: 'Redeploy' },
    { eventStatus: 'Started' },
    { eventSource: null },
    { notBefore: null },
    { resources: [] },
    { durationInSeconds: null },
  ])('differs with %j', (part) => {
    expect(digest16(sampleEvent(part))).not.toBe('1d105773e80d3ccc')
  })
})
