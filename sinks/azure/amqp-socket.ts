import type { Carrier, Dial } from './carrier.ts'

/** What rhea, beneath both SDKs, uses of a WebSocket. Source: rhea/lib/ws.js. */
interface RheaSocket {
  onopen: (() => void) | null
  onmessage: ((message: { readonly data: Buffer }) => void) | null
  onclose: (() => void) | null
  onerror: ((error: Error) => void) | null
  send(bytes: Buffer): void
  close(): void
}

export type RheaSocketClass = new () => RheaSocket

/** The sockets of one client of an SDK. */
export interface AmqpSockets {
  /** For `webSocketOptions.webSocket`. */
  readonly Socket: RheaSocketClass
  /**
   * Destroys what is open, which rhea knows when this returns, and lets nothing more be opened: an SDK that is closed afterwards has nobody to
   * wait for. Idempotent.
   */
  destroy(): void
}

/** What is left to a connection whose end was asked for politely: a peer that takes no bytes must not keep the socket. */
const lingerMs = 1000

/**
 * The one place where the Azure SDKs let the transport be chosen is the class of their WebSocket: rhea wants bytes in and out of it, nothing
 * more. So this class is what both transports run on, AMQP over TCP and over WebSockets, because owning the socket gives what the SDKs
 * withhold: no delay of small frames, knowing at once that the connection broke, and closing that does not wait for a peer that hangs.
 *
 * `onEnd` is called once for each socket that ended, however it did, after rhea has been told.
 */
export function amqpSockets(dial: Dial, onEnd: (error: Error | undefined) => void): AmqpSockets {
  const open = new Set<AmqpSocket>()
  const destroyed = new AbortController()

  class AmqpSocket implements RheaSocket {
    onopen: RheaSocket['onopen'] = null
    onmessage: RheaSocket['onmessage'] = null
    onclose: RheaSocket['onclose'] = null
    onerror: RheaSocket['onerror'] = null
    #carrier: Carrier | undefined
    #corked = false
    #ended = false

    constructor() {
      open.add(this)
      dial(destroyed.signal).then(
        (carrier) => this.#connected(carrier),
        (error: unknown) => this.#end(error instanceof Error ? error : new TypeError(String(error))),
      )
    }

    /** The frames of one turn of the event loop leave together: one system call, and one TLS record. */
    send(bytes: Buffer): void {
      if (this.#carrier === undefined) return
      const { stream, framing } = this.#carrier
      if (!stream.writable) return
      if (!this.#corked) {
        this.#corked = true
        stream.cork()
        process.nextTick(() => {
          this.#corked = false
          stream.uncork()
        })
      }
      stream.write(framing.encode(bytes))
    }

    close(): void {
      const stream = this.#carrier?.stream
      if (stream === undefined) return this.#end(undefined)
      const linger = setTimeout(() => stream.destroy(), lingerMs)
      stream.once('close', () => clearTimeout(linger))
      stream.destroySoon()
    }

    destroy(): void {
      this.#carrier?.stream.destroy()
      this.#end(undefined)
    }

    #connected(carrier: Carrier): void {
      const { stream, framing } = carrier
      let failure: Error | undefined
      stream.on('error', (error) => {
        failure = error
      })
      stream.on('end', () => stream.destroySoon())
      stream.on('close', () => this.#end(failure))
      if (destroyed.signal.aborted || this.#ended) {
        stream.destroy()
        return
      }
      this.#carrier = carrier
      stream.on('data', (chunk: Buffer) => {
        try {
          const { bytes, replies, ended } = framing.decode(chunk)
          for (const data of bytes) this.onmessage?.({ data })
          for (const reply of replies) stream.write(reply)
          if (ended) stream.destroySoon()
        } catch (error) {
          stream.destroy(error instanceof Error ? error : new TypeError(String(error)))
        }
      })
      this.onopen?.()
    }

    #end(error: Error | undefined): void {
      if (this.#ended) return
      this.#ended = true
      open.delete(this)
      if (error === undefined) this.onclose?.()
      else this.onerror?.(error)
      onEnd(error)
    }
  }

  return {
    Socket: AmqpSocket,
    destroy() {
      destroyed.abort()
      for (const socket of open) socket.destroy()
    },
  }
}
