/** Deep enough for any message of a person, shallow enough for any stack. */
const maxDepth = 32
/** Elements of an array that take no bytes at all, of which four bytes could announce four billion. */
const maxEmptyElements = 1024

/** Bytes of a value after its type code, by the high nibble of the code: AMQP 1.0 part 1.2. */
const fixedWidths: Readonly<Record<number, number>> = { 4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16 }

/**
 * Where the encoded value that begins at `at` ends, having looked at all that is inside: sizes, counts and nesting agree with each other.
 * rhea's decoder believes every count; what passes here costs it no more than the bytes are long. Throws RangeError.
 */
export function endOfValue(buffer: Buffer, at: number, depth = 0): number {
  if (depth > maxDepth) throw new RangeError('values are nested too deeply')
  const code = buffer.readUInt8(at)
  if (code !== 0) return endOfContent(buffer, at + 1, code, depth)
  return endOfValue(buffer, endOfValue(buffer, at + 1, depth + 1), depth + 1)
}

/** The same for a value whose type code stands elsewhere, as in an array. */
function endOfContent(buffer: Buffer, at: number, code: number, depth: number): number {
  const layout = code >> 4
  const fixed = fixedWidths[layout]
  if (fixed !== undefined) return within(buffer, at + fixed)
  if (layout < 0xa) throw new RangeError(`unknown type code 0x${code.toString(16)}`)
  const wide = layout % 2 === 1
  const size = wide ? buffer.readUInt32BE(at) : buffer.readUInt8(at)
  const content = at + (wide ? 4 : 1)
  const end = within(buffer, content + size)
  if (layout <= 0xb) return end
  const count = wide ? buffer.readUInt32BE(content) : buffer.readUInt8(content)
  const first = content + (wide ? 4 : 1)
  const last = layout <= 0xd ? endOfItems(buffer, first, end, count, depth) : endOfElements(buffer, first, end, count, depth)
  if (last !== end) throw new RangeError(`a compound value at byte ${at} is not as long as it says`)
  return end
}

function endOfItems(buffer: Buffer, first: number, end: number, count: number, depth: number): number {
  let at = first
  for (let item = 0; item < count && at <= end; item += 1) at = endOfValue(buffer, at, depth + 1)
  return at
}

function endOfElements(buffer: Buffer, first: number, end: number, count: number, depth: number): number {
  let constructor = first
  while (buffer.readUInt8(constructor) === 0) constructor = endOfValue(buffer, constructor + 1, depth + 1)
  const code = buffer.readUInt8(constructor)
  let at = constructor + 1
  if (fixedWidths[code >> 4] === 0 && count > maxEmptyElements) throw new RangeError(`an array announces ${count} elements without content`)
  for (let element = 0; element < count && at <= end; element += 1) at = endOfContent(buffer, at, code, depth + 1)
  return at
}

function within(buffer: Buffer, end: number): number {
  if (end > buffer.length) throw new RangeError('a value runs past the end')
  return end
}
