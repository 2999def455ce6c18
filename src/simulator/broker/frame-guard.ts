import { endOfValue } from './amqp-value.ts'

const protocolMagic = 0x414d5150
const headerBytes = 8
const disposition = 0x15
/** A disposition names a range of deliveries, over which rhea goes one by one. */
const maxRange = 65_536

/**
 * Stands between a peer and rhea: collects bytes to whole frames, at most `maxFrameBytes` long, and lets only those pass that a decoder can
 * read without harm. A protocol header passes by itself, so that a peer need not wait between the layers.
 */
export class FrameGuard {
  readonly #maxFrameBytes: number
  #pending: Buffer = Buffer.alloc(0)

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes
  }

  /** What may be handed on, in order. Throws RangeError where the stream is beyond repair. */
  push(chunk: Buffer): Buffer[] {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const passed: Buffer[] = []
    let from = 0
    let at = 0
    const pass = (to: number): void => {
      if (to > from) passed.push(bytes.subarray(from, to))
      from = to
    }
    while (bytes.length - at >= headerBytes) {
      const size = bytes.readUInt32BE(at)
      if (size === protocolMagic) {
        pass(at)
        at += headerBytes
        pass(at)
        continue
      }
      if (size < headerBytes || size > this.#maxFrameBytes)
        throw new RangeError(`a frame of ${size} bytes, with ${this.#maxFrameBytes} allowed`)
      if (bytes.length - at < size) break
      checkFrame(bytes.subarray(at, at + size))
      at += size
    }
    pass(at)
    this.#pending = bytes.subarray(at)
    return passed
  }
}

function checkFrame(frame: Buffer): void {
  const body = frame.readUInt8(4) * 4
  if (body < headerBytes || body > frame.length) throw new RangeError('a frame has a bad data offset')
  if (body === frame.length) return
  if (frame.readUInt8(body) !== 0) throw new RangeError('a frame must hold a described performative')
  endOfValue(frame, body)
  const value = endOfValue(frame, body + 1)
  if (frame[body + 1] === 0x53 && frame[body + 2] === disposition) checkRange(frame, value)
}

/** Fields of a disposition: role, first, last. */
function checkRange(frame: Buffer, list: number): void {
  const wide = frame[list] === 0xd0
  const count = wide ? frame.readUInt32BE(list + 5) : frame.readUInt8(list + 2)
  if (count < 3) return
  const first = endOfValue(frame, list + (wide ? 9 : 3))
  const last = endOfValue(frame, first)
  if (readUint(frame, last) - readUint(frame, first) > maxRange) throw new RangeError('a disposition covers too many deliveries')
}

/** 0 for null, or what is no uint. */
function readUint(frame: Buffer, at: number): number {
  if (frame[at] === 0x52) return frame.readUInt8(at + 1)
  return frame[at] === 0x70 ? frame.readUInt32BE(at + 1) : 0
}
