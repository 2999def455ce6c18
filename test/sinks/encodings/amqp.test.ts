import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { amqpMessage } from '../../../sinks/encodings/amqp.ts'
import { structuredJson } from '../../../sinks/encodings/structured.ts'
import { sampleEvent } from '../../support/sample-event.ts'

const modes = ['structured', 'binary'] as const

describe.each(modes)('an event as an AMQP message in %s mode', (mode) => {
  it('has each attribute but the media type as a string property, in its canonical text', () => {
    const { properties } = amqpMessage(sampleEvent(1), mode)
    expect(properties).toMatchObject({
      cloudEvents_specversion: '1.0',
      cloudEvents_id: sampleEvent(1).id,
      cloudEvents_severitynumber: '13',
      cloudEvents_extbool: 'false',
      cloudEvents_exttext: 'Euro € 😀 a"b 100% c\\d é',
    })
    expect(properties).not.toHaveProperty('cloudEvents_datacontenttype')
    expect(properties).not.toHaveProperty('cloudEvents_data')
  })

  it('has bytes for a body and strings for properties, whatever the attributes are', () => {
    const attribute = fc.oneof(fc.string({ unit: 'binary' }), fc.boolean(), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^ext[a-z0-9]{1,17}$/), attribute), (extensions) => {
        const { body, properties } = amqpMessage(sampleEvent(1, extensions), mode)
        expect(Buffer.isBuffer(body)).toBe(true)
        for (const [name, value] of Object.entries(extensions)) expect(properties[`cloudEvents_${name}`]).toBe(String(value))
      }),
    )
  })
})

describe('the body of an AMQP message', () => {
  it('is the JSON format in structured mode', () => {
    const { body, contentType } = amqpMessage(sampleEvent(1), 'structured')
    expect(body.toString('utf8')).toBe(structuredJson(sampleEvent(1)))
    expect(contentType).toBe('application/cloudevents+json; charset=utf-8')
  })

  it('is the data alone in binary mode, of its own media type', () => {
    const { body, contentType } = amqpMessage(sampleEvent(1), 'binary')
    expect(JSON.parse(body.toString('utf8'))).toEqual(sampleEvent(1).data)
    expect(contentType).toBe('application/json')
  })
})
