import rhea from 'rhea'
import { expect, test } from 'vitest'
import { encodeDelivery, readMessage } from '../../../src/simulator/broker/message.ts'
import { sectionCode, splitSections } from '../../../src/simulator/broker/sections.ts'

const { types } = rhea

/** A message with types that an encoder of JavaScript would not choose by itself. */
const odd = rhea.message.encode({
  ttl: 5,
  durable: true,
  message_annotations: { mine: types.wrap_ubyte(7), 'x-opt-offset': 'old' },
  message_id: types.wrap_uuid(Buffer.alloc(16, 1)),
  application_properties: { long: types.wrap_long(5), short: types.wrap_short(5), decimal: types.wrap_float(1.5) },
  body: rhea.message.data_section(Buffer.from('body')),
})

const bare = (message: Buffer) => splitSections(message).filter((section) => section.code >= sectionCode.properties)

test('a delivered message has the bare message byte for byte as it was sent', () => {
  const delivered = encodeDelivery(readMessage(odd), { deliveryCount: 3, annotations: { 'x-opt-offset': '9' } })
  expect(bare(delivered).map((section) => section.bytes)).toEqual(bare(odd).map((section) => section.bytes))
})

test('annotations of the sender keep their type beside those of the broker, which win', () => {
  const delivered = encodeDelivery(readMessage(odd), { deliveryCount: 3, annotations: { 'x-opt-offset': '9' } })
  expect(rhea.message.decode(delivered)).toMatchObject({
    durable: true,
    ttl: 5,
    delivery_count: 3,
    message_annotations: { mine: 7, 'x-opt-offset': '9' },
  })
  // 0x50 is ubyte.
  expect(delivered.includes(Buffer.concat([Buffer.from([0xa3, 4]), Buffer.from('mine'), Buffer.from([0x50, 7])]))).toBe(true)
})

test('application properties that the broker adds leave the others as they were', () => {
  const delivered = encodeDelivery(readMessage(odd), { annotations: {}, applicationProperties: { DeadLetterReason: 'x', short: 'new' } })
  expect(rhea.message.decode(delivered)['application_properties']).toEqual({ long: 5, decimal: 1.5, DeadLetterReason: 'x', short: 'new' })
  const [before, after] = [odd, delivered].map((message) => message.includes(Buffer.from([0xa1, 4, ...Buffer.from('long'), 0x55, 5])))
  expect([before, after]).toEqual([true, true])
})

test('a body can be left out', () => {
  const delivered = encodeDelivery(readMessage(odd), { annotations: {}, omitBody: true })
  expect(splitSections(delivered).map((section) => section.code)).toEqual([
    sectionCode.header,
    sectionCode.messageAnnotations,
    sectionCode.properties,
    sectionCode.applicationProperties,
  ])
})

test('every cut of a message is refused, or ends between two sections', () => {
  const ends = new Set([0])
  let at = 0
  for (const section of splitSections(odd)) ends.add((at += section.bytes.length))
  const lengths = Array.from({ length: odd.length }, (_, length) => length)
  const readable = lengths.filter((length) => {
    try {
      return splitSections(odd.subarray(0, length)).length >= 0
    } catch (error) {
      if (error instanceof RangeError) return false
      throw error
    }
  })
  expect(readable).toEqual([...ends].filter((end) => end < odd.length))
})
