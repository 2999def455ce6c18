import { describe, expect, it } from 'vitest'
import { askingOf, consentOf, validateSchema } from '../../../sinks/webhook/consent.ts'

const asking = { origin: 'foreshock.contoso.example', rate: undefined }
const consent = (allowedOrigin: string | undefined, allowedRate: string | undefined, status = 200): ReturnType<typeof consentOf> =>
  consentOf({ status, allowedOrigin, allowedRate }, asking)

describe('consent', () => {
  it.each([
    ['*', '*', Number.POSITIVE_INFINITY],
    ['*', undefined, Number.POSITIVE_INFINITY],
    ['foreshock.contoso.example', '60', 60],
    ['Foreshock.Contoso.Example', '1', 1],
  ])('is given by the origin %s and the rate %s', (origin, rate, perMinute) => {
    expect(consent(origin, rate)).toEqual({ given: true, perMinute })
  })

  it('is in the headers alone: the status says nothing', () => {
    expect(consent('*', '60', 405)).toMatchObject({ given: true })
    expect(consent(undefined, '60', 200)).toMatchObject({ given: false })
  })

  it.each([
    ['of another', 'eventemitter.example.com', '*'],
    ['of everybody below', 'contoso.example', '*'],
    ['of nobody', '', '*'],
    ['without a rate that counts', '*', '0'],
    ['with a negative rate', '*', '-1'],
    ['with a rate that is no number', '*', 'fast'],
    ['with a rate of a half', '*', '0.5'],
  ])('%s is none', (_, origin, rate) => {
    expect(consent(origin, rate)).toMatchObject({ given: false, why: expect.any(String) })
  })
})

describe('the option `validate`', () => {
  it('is off, on, or says who asks for how much', () => {
    expect(askingOf(validateSchema.parse(undefined))).toBeUndefined()
    expect(askingOf(validateSchema.parse(true))).toEqual({ origin: 'foreshock', rate: undefined })
    expect(askingOf(validateSchema.parse({ origin: 'foreshock.contoso.example', rate: 120 }))).toEqual({ ...asking, rate: 120 })
  })

  it.each(['yes', { origin: 'a b' }, { origin: 'https://foreshock.contoso.example' }, { origin: 'a\r\nx: y' }, { origin: 'a', rate: 0 }])(
    'is not %j',
    (validate) => expect(validateSchema.safeParse(validate).success).toBe(false),
  )
})
