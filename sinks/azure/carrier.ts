import type { Socket } from 'node:net'

/** How the bytes of AMQP lie on a stream: bare, or in the frames of a WebSocket. */
export interface Framing {
  encode(bytes: Buffer): Buffer
  /** What a chunk completes: bytes for AMQP, frames to send back, and whether the other side said goodbye. */
  decode(chunk: Buffer): Decoded
}

export interface Decoded {
  readonly bytes: readonly Buffer[]
  readonly replies: readonly Buffer[]
  readonly ended: boolean
}

/** A connected stream and how AMQP lies on it. */
export interface Carrier {
  readonly stream: Socket
  readonly framing: Framing
}

/** Connects, all the way up to where AMQP begins. Rejects, and leaves nothing behind, when `signal` aborts. */
export type Dial = (signal: AbortSignal) => Promise<Carrier>

/** AMQP straight on TCP or TLS. */
export const bare: Framing = {
  encode: (bytes) => bytes,
  decode: (chunk) => ({ bytes: [chunk], replies: [], ended: false }),
}
