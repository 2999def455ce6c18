import rhea from 'rhea'
import { endOfValue } from './amqp-value.ts'

/** Descriptor codes of the message sections, AMQP 1.0 part 3.2. */
export const sectionCode = {
  header: 0x70,
  deliveryAnnotations: 0x71,
  messageAnnotations: 0x72,
  properties: 0x73,
  applicationProperties: 0x74,
  data: 0x75,
  sequence: 0x76,
  value: 0x77,
  footer: 0x78,
} as const

const list = [0x45, 0xc0, 0xd0]
const map = [0xc1, 0xd1]
const binary = [0xa0, 0xb0]

/** Type codes that the value of a section may have; of a value section any. rhea's decoder does not look. */
const valueCodes: Readonly<Record<number, readonly number[]>> = {
  [sectionCode.header]: list,
  [sectionCode.deliveryAnnotations]: map,
  [sectionCode.messageAnnotations]: map,
  [sectionCode.properties]: list,
  [sectionCode.applicationProperties]: map,
  [sectionCode.data]: binary,
  [sectionCode.sequence]: list,
  [sectionCode.footer]: map,
}

const codeOfSymbol: Readonly<Record<string, number>> = {
  'amqp:header:list': 0x70,
  'amqp:delivery-annotations:map': 0x71,
  'amqp:message-annotations:map': 0x72,
  'amqp:properties:list': 0x73,
  'amqp:application-properties:map': 0x74,
  'amqp:data:binary': 0x75,
  'amqp:amqp-sequence:list': 0x76,
  'amqp:amqp-value:*': 0x77,
  'amqp:value:*': 0x77,
  'amqp:footer:map': 0x78,
}

/** One section as it stood on the wire. */
export interface Section {
  readonly code: number
  /** Descriptor and value. */
  readonly bytes: Buffer
  /** The value alone, beginning with its type code. */
  readonly value: Buffer
}

/**
 * Cuts an encoded message into its sections without decoding what is inside, because the bare message must be delivered byte for byte as it
 * was sent: a uint that came as smalluint leaves as smalluint. Throws RangeError where the bytes are no message.
 */
export function splitSections(message: Buffer): Section[] {
  const sections: Section[] = []
  for (let at = 0; at < message.length;) {
    if (message[at] !== 0) throw new RangeError(`expected a described section at byte ${at}, got type code ${message[at]}`)
    const descriptorEnd = endOfValue(message, at + 1)
    const end = endOfValue(message, descriptorEnd)
    const code = readDescriptor(message.subarray(at + 1, descriptorEnd))
    const typeCode = message.readUInt8(descriptorEnd)
    if (valueCodes[code]?.includes(typeCode) === false) throw new RangeError(`section ${code} cannot hold a value of type code ${typeCode}`)
    sections.push({ code, bytes: message.subarray(at, end), value: message.subarray(descriptorEnd, end) })
    at = end
  }
  return sections
}

/** Binary content of a data section. */
export function dataOf(section: Section): Buffer {
  return section.value.subarray(section.value[0] === 0xa0 ? 2 : 5)
}

/**
 * The map section `code` with `additions` put in, or over entries of the same key. The other entries keep their encoding.
 * Values may be rhea's typed ones. Null where the result would be empty.
 */
export function withEntries(code: number, section: Section | undefined, additions: Readonly<Record<string, unknown>>): Buffer | null {
  const field = code === sectionCode.applicationProperties ? 'application_properties' : 'message_annotations'
  const encoded = splitSections(rhea.message.encode({ [field]: additions, body: null }))
  const added = entriesOf(encoded.find((candidate) => candidate.code === fieldCode[field]))
  const kept = entriesOf(section).filter((entry) => !Object.hasOwn(additions, entry.key))
  const entries = [...kept, ...added]
  if (entries.length === 0) return null
  const content = Buffer.concat(entries.map((entry) => entry.bytes))
  const head = Buffer.alloc(12)
  head.writeUInt8(0x00, 0)
  head.writeUInt8(0x53, 1)
  head.writeUInt8(code, 2)
  head.writeUInt8(0xd1, 3)
  head.writeUInt32BE(content.length + 4, 4)
  head.writeUInt32BE(entries.length * 2, 8)
  return Buffer.concat([head, content])
}

const fieldCode = { application_properties: sectionCode.applicationProperties, message_annotations: sectionCode.messageAnnotations }

function entriesOf(section: Section | undefined): { key: string; bytes: Buffer }[] {
  if (section === undefined) return []
  const short = section.value[0] === 0xc1
  const entries = []
  for (let at = short ? 3 : 9; at < section.value.length;) {
    const keyEnd = endOfValue(section.value, at)
    const end = endOfValue(section.value, keyEnd)
    entries.push({ key: readText(section.value.subarray(at, keyEnd)), bytes: section.value.subarray(at, end) })
    at = end
  }
  return entries
}

function readDescriptor(bytes: Buffer): number {
  if (bytes[0] === 0x53) return bytes.readUInt8(1)
  if (bytes[0] === 0x80) return Number(bytes.readBigUInt64BE(1))
  const code = codeOfSymbol[readText(bytes)]
  if (code === undefined) throw new RangeError('unknown section descriptor')
  return code
}

/** Text of a string or symbol, the hex digits of anything else, which no key that we look for can equal. */
function readText(bytes: Buffer): string {
  if (bytes[0] === 0xa1 || bytes[0] === 0xa3) return bytes.toString('utf8', 2)
  if (bytes[0] === 0xb1 || bytes[0] === 0xb3) return bytes.toString('utf8', 5)
  return `0x${bytes.toString('hex')}`
}
