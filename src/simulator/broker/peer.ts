import type { Socket } from 'node:net'
import type { Wire } from './rhea-internals.ts'
import { FrameGuard } from './frame-guard.ts'
import { encodeFrame, WebSocketReader, type Incoming } from './websocket.ts'

/** As in Azure. */
export const maxFrameBytes = 65_536

export interface PeerOptions {
  readonly webSocket: boolean
  /** The peer sent what is no AMQP; it is disconnected. */
  readonly onBroken: (error: RangeError) => void
  readonly onClose: () => void
}

/**
 * One socket as rhea sees it: bytes of AMQP in and out, whether they travel bare or inside WebSocket frames. Standing still (`freeze`) and
 * breaking (`destroy`) happen here, below AMQP, as they do in the world. `end` reaches rhea exactly once, however the socket died.
 */
export class Peer implements Wire {
  readonly #socket: Socket
  readonly #reader: WebSocketReader | null
  readonly #guard = new FrameGuard(maxFrameBytes)
  readonly #onBroken: (error: RangeError) => void
  readonly #handlers = new Map<string, (value?: unknown) => void>()
  #frozen = false
  #corked = false
  /** What rhea wrote while frozen. */
  #held: Buffer[] = []

  constructor(socket: Socket, options: PeerOptions) {
    this.#socket = socket
    this.#onBroken = options.onBroken
    this.#reader = options.webSocket ? new WebSocketReader() : null
    // Without it, acknowledgements of small frames wait for Nagle's algorithm and delayed ACK: about 40 ms.
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      this.#receive(chunk)
    })
    // A reset is followed by `close`, which is all that matters here.
    socket.on('error', () => {})
    socket.on('end', () => {
      socket.end()
    })
    socket.on('close', () => {
      this.#handlers.get('end')?.()
      options.onClose()
    })
  }

  on(event: 'data' | 'end' | 'error', handler: (value?: unknown) => void): void {
    this.#handlers.set(event, handler)
  }

  removeAllListeners(event: string): void {
    this.#handlers.delete(event)
  }

  /** Frames of one turn of the event loop leave in one segment. */
  write(bytes: Buffer): void {
    // Answers that were on their way when the socket died have nowhere to go.
    if (!this.#socket.writable) return
    const framed = this.#reader === null ? bytes : encodeFrame(2, bytes)
    if (this.#frozen) {
      this.#held.push(framed)
      return
    }
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
      process.nextTick(() => {
        this.#corked = false
        this.#socket.uncork()
      })
    }
    this.#socket.write(framed)
  }

  end(): void {
    if (this.#reader !== null && this.#socket.writable) this.#socket.write(encodeFrame(8, Buffer.from([0x03, 0xe8])))
    this.#socket.end()
    // A peer that never closes its half must not keep the socket.
    setTimeout(() => this.#socket.destroy(), 1000).unref()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  freeze(frozen: boolean): void {
    this.#frozen = frozen
    if (frozen) {
      this.#socket.pause()
      return
    }
    for (const bytes of this.#held) this.#socket.write(bytes)
    this.#held = []
    this.#socket.resume()
  }

  #receive(chunk: Buffer): void {
    try {
      if (this.#reader === null) this.#deliver(chunk)
      else for (const part of this.#reader.read(chunk)) this.#handle(part)
    } catch (error) {
      // Both readers throw this, and only this, for bytes that break the protocol.
      if (!(error instanceof RangeError)) throw error
      this.#onBroken(error)
      this.#socket.destroy()
    }
  }

  #handle(part: Incoming): void {
    if (part.kind === 'bytes') this.#deliver(part.bytes)
    else this.#socket.write(part.bytes)
    if (part.kind === 'end') this.#socket.end()
  }

  #deliver(bytes: Buffer): void {
    for (const passed of this.#guard.push(bytes)) if (!this.#socket.destroyed) this.#handlers.get('data')?.(passed)
  }
}
