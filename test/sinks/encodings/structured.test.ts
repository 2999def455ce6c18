import { CloudEvent as SdkEvent } from 'cloudevents'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { structuredContentType, structuredJson } from '../../../sinks/encodings/structured.ts'
import { sampleEvent } from '../../support/sample-event.ts'

describe('an event in the JSON format', () => {
  it('is one line with who, what and when first, the rest by name, and data last', () => {
    const json = structuredJson(sampleEvent(1))
    expect(json).not.toContain('\n')
    expect(Object.keys(JSON.parse(json))).toEqual([
      'specversion',
      'id',
      'source',
      'type',
      'subject',
      'time',
      'datacontenttype',
      'dataschema',
      'partitionkey',
      'azincarnation',
      'extbool',
      'exttext',
      'severitynumber',
      'severitytext',
      'data',
    ])
  })

  it('keeps booleans and integers as such', () => {
    expect(JSON.parse(structuredJson(sampleEvent(1)))).toEqual(sampleEvent(1))
  })

  it('is the same text whatever the order in which the event was built', () => {
    const event = sampleEvent(1)
    const reversed = { ...event, ...Object.fromEntries(Object.entries(event).toReversed()) }
    expect(structuredJson(reversed)).toBe(structuredJson(event))
  })

  it('is valid by the JSON Schema of the specification', () => {
    const parsed: Partial<SdkEvent> = JSON.parse(structuredJson(sampleEvent(1)))
    expect(new SdkEvent(parsed, false).validate()).toBe(true)
  })

  it('writes a lone surrogate as an escape', () => {
    const json = structuredJson(sampleEvent(1, { exttext: 'a\ud83db' }))
    expect(json.isWellFormed()).toBe(true)
    expect(JSON.parse(json)).toMatchObject({ exttext: 'a\ud83db' })
  })

  it('is valid UTF-8 on one line for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = structuredJson(sampleEvent(1, { exttext: text, data: { text } }))
        expect(json.isWellFormed()).toBe(true)
        expect(json).not.toMatch(/[\r\n]/)
        expect(JSON.parse(json)).toMatchObject({ exttext: text, data: { text } })
      }),
    )
  })

  it('has the media type that the bindings ask for', () => {
    expect(structuredContentType).toBe('application/cloudevents+json; charset=utf-8')
  })
})
