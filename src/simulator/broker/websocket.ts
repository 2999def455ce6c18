import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** RFC 6455 as a server needs it for AMQP: binary messages, ping and close. Extensions are never agreed to. */

export const webSocketPath = '/$servicebus/websocket'
const subprotocol = 'AMQPWSB10'
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** An AMQP frame is 64 KiB at most here; what is larger is no AMQP. */
const maxFrameBytes = 1_048_576

/** The answer to an upgrade request: 101, or why not. */
export function answerUpgrade(request: IncomingMessage): { readonly accepted: boolean; readonly head: string } {
  const key = request.headers['sec-websocket-key']
  const path = request.url?.split('?')[0]?.replace(/\/+$/, '')
  if (path?.toLowerCase() !== webSocketPath) return refused('404 Not Found')
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || key === undefined) return refused('400 Bad Request')
  if (request.headers['sec-websocket-version'] !== '13') return refused('426 Upgrade Required', 'Sec-WebSocket-Version: 13')
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${createHash('sha1').update(`${key}${acceptSuffix}`).digest('base64')}`,
  ]
  const agreed = offered.find((name) => name.toUpperCase() === subprotocol)
  if (agreed !== undefined) lines.push(`Sec-WebSocket-Protocol: ${agreed}`)
  return { accepted: true, head: `${lines.join('\r\n')}\r\n\r\n` }
}

function refused(status: string, ...headers: string[]): { accepted: boolean; head: string } {
  return { accepted: false, head: `${[`HTTP/1.1 ${status}`, 'Connection: close', 'Content-Length: 0', ...headers].join('\r\n')}\r\n\r\n` }
}

/** What came in: bytes for AMQP, or a frame to send back, or the end. */
export type Incoming = { readonly kind: 'bytes' | 'reply'; readonly bytes: Buffer } | { readonly kind: 'end'; readonly bytes: Buffer }

/** Takes chunks of the socket and gives what they complete. Throws RangeError on a frame that breaks the protocol. */
export class WebSocketReader {
  #pending: Buffer = Buffer.alloc(0)

  read(chunk: Buffer): Incoming[] {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const found: Incoming[] = []
    for (let frame = this.#next(); frame !== null; frame = this.#next()) {
      // AMQP is a stream of bytes: where one message ends and the next begins, or how it is fragmented, carries no meaning.
      if (frame.opcode <= 2) found.push({ kind: 'bytes', bytes: frame.payload })
      else if (frame.opcode === 8) found.push({ kind: 'end', bytes: encodeFrame(8, frame.payload.subarray(0, 2)) })
      else if (frame.opcode === 9) found.push({ kind: 'reply', bytes: encodeFrame(10, frame.payload) })
    }
    return found
  }

  #next(): { opcode: number; payload: Buffer } | null {
    const bytes = this.#pending
    if (bytes.length < 2) return null
    const opcode = bytes.readUInt8(0) & 0x0f
    const lengthCode = bytes.readUInt8(1) & 0x7f
    if ((bytes.readUInt8(1) & 0x80) === 0) throw new RangeError('a frame of a WebSocket client must be masked')
    const lengthBytes = lengthCode === 126 ? 2 : lengthCode === 127 ? 8 : 0
    const headBytes = 2 + lengthBytes + 4
    if (bytes.length < headBytes) return null
    let length = lengthCode
    if (lengthBytes === 2) length = bytes.readUInt16BE(2)
    if (lengthBytes === 8) length = Number(bytes.readBigUInt64BE(2))
    if (length > maxFrameBytes) throw new RangeError(`a WebSocket frame of ${length} bytes is too long`)
    if (bytes.length < headBytes + length) return null
    const mask = bytes.subarray(headBytes - 4, headBytes)
    const payload = Buffer.from(bytes.subarray(headBytes, headBytes + length))
    for (let at = 0; at < length; at += 1) payload[at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0)
    this.#pending = bytes.subarray(headBytes + length)
    return { opcode, payload }
  }
}

/** One unmasked, unfragmented frame, as servers send them. Opcode 2 is binary. */
export function encodeFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head.writeUInt8(0x80 | opcode, 0)
  if (length < 126) {
    head.writeUInt8(length, 1)
  } else if (length < 65_536) {
    head.writeUInt8(126, 1)
    head.writeUInt16BE(length, 2)
  } else {
    head.writeUInt8(127, 1)
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}
