/** Lock tokens are GUIDs. As text here; on the wire as 16 bytes in one of two orders. */

export function newLockToken(random: () => number): string {
  const bytes = Buffer.alloc(16)
  for (let at = 0; at < 16; at += 4) bytes.writeUInt32BE(Math.floor(random() * 0x1_0000_0000), at)
  return lockTokenOf(bytes)
}

/** In the order of the text, as the management operations have it. */
export function lockTokenBytes(token: string): Buffer {
  return Buffer.from(token.replaceAll('-', ''), 'hex')
}

export function lockTokenOf(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** In the order of .NET's Guid.ToByteArray, as delivery tags have it: the first three groups are turned round. */
export function deliveryTag(token: string): Buffer {
  const bytes = lockTokenBytes(token)
  bytes.subarray(0, 4).reverse()
  bytes.subarray(4, 6).reverse()
  bytes.subarray(6, 8).reverse()
  return bytes
}
