/**
 * The partition that a key belongs to: the same as in Azure, so that a key lands on one partition here and there alike.
 * Bob Jenkins' lookup3, the two halves folded to a signed 16-bit number.
 *
 * Source: `mapPartitionKeyToId` of @azure/event-hubs.
 */
export function partitionOfKey(key: string, partitionCount: number): number {
  const { b, c } = lookup3(Buffer.from(key, 'utf8'))
  return Math.abs((((c ^ b) << 16) >> 16) % partitionCount)
}

function lookup3(data: Buffer): { b: number; c: number } {
  let a = (0xdeadbeef + data.length) | 0
  let b = a
  let c = a
  if (data.length === 0) return { b, c }
  let at = 0
  for (; data.length - at > 12; at += 12) {
    a = (a + data.readUInt32LE(at)) | 0
    b = (b + data.readUInt32LE(at + 4)) | 0
    c = (c + data.readUInt32LE(at + 8)) | 0
    a = ((a - c) ^ rotate(c, 4)) | 0
    c = (c + b) | 0
    b = ((b - a) ^ rotate(a, 6)) | 0
    a = (a + c) | 0
    c = ((c - b) ^ rotate(b, 8)) | 0
    b = (b + a) | 0
    a = ((a - c) ^ rotate(c, 16)) | 0
    c = (c + b) | 0
    b = ((b - a) ^ rotate(a, 19)) | 0
    a = (a + c) | 0
    c = ((c - b) ^ rotate(b, 4)) | 0
    b = (b + a) | 0
  }
  // The last 1 to 12 bytes count as if padded with zeros.
  const tail = Buffer.alloc(12)
  data.copy(tail, 0, at)
  a = (a + tail.readUInt32LE(0)) | 0
  b = (b + tail.readUInt32LE(4)) | 0
  c = (c + tail.readUInt32LE(8)) | 0
  c = ((c ^ b) - rotate(b, 14)) | 0
  a = ((a ^ c) - rotate(c, 11)) | 0
  b = ((b ^ a) - rotate(a, 25)) | 0
  c = ((c ^ b) - rotate(b, 16)) | 0
  a = ((a ^ c) - rotate(c, 4)) | 0
  b = ((b ^ a) - rotate(a, 14)) | 0
  c = ((c ^ b) - rotate(b, 24)) | 0
  return { b, c }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}
