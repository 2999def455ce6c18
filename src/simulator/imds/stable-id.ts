import { createHash } from 'node:crypto'

/**
 * A GUID in the shape of RFC 4122 version 4, lower-case, that depends on `seed` alone: two runs of a scenario use the same ids and can be
 * compared line by line.
 */
export function stableId(seed: string): string {
  const bytes = createHash('sha256').update(`foreshock simulator ${seed}`).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
