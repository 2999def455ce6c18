import { createHash, randomBytes } from 'node:crypto'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ForeshockError } from '../error.ts'
import type { Decoded, Framing } from './carrier.ts'

/**
 * RFC 6455 as a client needs it for AMQP. Node's own WebSocket would do but for three things: it knows no proxy, closing it waits for the
 * other side, and it loads all of fetch.
 */

const path = '/$servicebus/websocket'
const subprotocol = 'AMQPWSB10'
/** Appended to the key before hashing. RFC 6455, section 1.3. */
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** A frame of AMQP is 64 KiB at most here; what is larger is no AMQP. */
const maxFrameBytes = 1_048_576

const opcodes = { binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Turns a connected stream into a WebSocket. Throws `unreachable` where the other side does not agree; the stream is destroyed then. */
export async function upgrade(stream: Socket, authority: string, signal: AbortSignal): Promise<Framing> {
  const key = randomBytes(16).toString('base64')
  const request = requestHttp({
    path,
    headers: {
      host: authority,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': key,
      'sec-websocket-protocol': subprotocol,
    },
    createConnection: () => stream,
    signal,
  })
  const { promise, resolve, reject } = Promise.withResolvers<Framing>()
  const refuse = (answer: string): void => {
    stream.destroy()
    reject(new ForeshockError('unreachable', `${authority} does not open a WebSocket for AMQP: ${answer}`))
  }
  request.on('error', reject)
  request.on('response', (response: IncomingMessage) => refuse(`it answered ${response.statusCode}`))
  request.on('upgrade', (response: IncomingMessage, socket: Socket, head: Buffer) => {
    const expected = createHash('sha1').update(`${key}${acceptSuffix}`).digest('base64')
    if (response.headers['sec-websocket-accept'] !== expected) return refuse('its Sec-WebSocket-Accept does not fit')
    if (head.length > 0) socket.unshift(head)
    resolve(webSocketFraming())
  })
  request.end()
  return await promise
}

/** One binary frame a write. Throws RangeError from `decode` on a frame that breaks the protocol. */
export function webSocketFraming(): Framing {
  let pending: Buffer = Buffer.alloc(0)

  const next = (): { opcode: number; payload: Buffer } | undefined => {
    if (pending.length < 2) return undefined
    const [first = 0, second = 0] = pending
    if ((second & 0x80) !== 0) throw new RangeError('a frame of a WebSocket server must not be masked')
    const code = second & 0x7f
    const headBytes = code === 127 ? 10 : code === 126 ? 4 : 2
    if (pending.length < headBytes) return undefined
    const length = code === 127 ? Number(pending.readBigUInt64BE(2)) : code === 126 ? pending.readUInt16BE(2) : code
    if (length > maxFrameBytes) throw new RangeError(`a WebSocket frame of ${length} bytes is too long`)
    if (pending.length < headBytes + length) return undefined
    const payload = pending.subarray(headBytes, headBytes + length)
    pending = pending.subarray(headBytes + length)
    return { opcode: first & 0x0f, payload }
  }

  return {
    encode: (bytes) => maskedFrame(opcodes.binary, bytes),
    decode(chunk): Decoded {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      const bytes: Buffer[] = []
      const replies: Buffer[] = []
      let ended = false
      for (let frame = next(); frame !== undefined; frame = next()) {
        // AMQP is a stream: how it is cut into messages and fragments carries no meaning.
        if (frame.opcode <= opcodes.binary) bytes.push(frame.payload)
        else if (frame.opcode === opcodes.ping) replies.push(maskedFrame(opcodes.pong, frame.payload))
        else if (frame.opcode === opcodes.close) {
          replies.push(maskedFrame(opcodes.close, frame.payload.subarray(0, 2)))
          ended = true
        }
      }
      return { bytes, replies, ended }
    },
  }
}

/** A client masks what it sends, with a key that nobody can foresee. RFC 6455, section 5.3. */
function maskedFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const headBytes = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const frame = Buffer.allocUnsafe(headBytes + 4 + length)
  frame[0] = 0x80 | opcode
  if (headBytes === 2) {
    frame[1] = 0x80 | length
  } else if (headBytes === 4) {
    frame[1] = 0x80 | 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 0x80 | 127
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  const mask = randomBytes(4)
  frame.set(mask, headBytes)
  const start = headBytes + 4
  for (let at = 0; at < length; at += 1) frame[start + at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0)
  return frame
}
