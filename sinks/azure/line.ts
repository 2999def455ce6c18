import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CloudEvent } from '../cloud-event.ts'
import { ForeshockError } from '../error.ts'
import { amqpSockets, type RheaSocketClass } from './amqp-socket.ts'
import type { Dial } from './carrier.ts'
import { meaningOf } from './failures.ts'

/** A client of an SDK, for one entity. Its own retries are off. */
export interface Client {
  /** Resolves when connection and sender link are open: without any I/O where they are already. */
  open(signal: AbortSignal): Promise<unknown>
  /** Resolves when the broker has accepted the event. */
  send(event: CloudEvent, signal: AbortSignal): Promise<unknown>
  close(): Promise<void>
}

/** Makes a client that connects by this class of sockets, when it is opened. */
export type Connect = (Socket: RheaSocketClass) => Promise<Client>

/**
 * One connection to a broker with one sender link, from its opening to its loss. It is never mended: what the SDKs do to reconnect depends on
 * when which part broke, so after a loss a new client is made, and there is one way of opening only.
 */
export interface Line {
  /** Rejects with what the broker said, with why the line is gone, or when `signal` aborts: a broker that hangs answers nothing. */
  send(event: CloudEvent, signal: AbortSignal): Promise<void>
  /** Whether the link is still attached. The SDKs tell nobody when it is not. */
  isOpen(): Promise<boolean>
  /** Gives the line up, at once. Idempotent. */
  lose(reason: Error): void
  /**
   * Gives the line up and waits until the SDK has let go. Without the goodbyes of AMQP, for which the SDKs would wait and, where none comes back,
   * never stop renewing their tokens: that the connection ended says the same. Idempotent.
   */
  close(): Promise<void>
}

/** The SDKs clean up without waiting for anybody; more than this means that they do not. */
const cleanUpMs = 1_000

interface LineOptions {
  readonly connect: Connect
  readonly dial: Dial
  /** Ends the opening. */
  readonly signal: AbortSignal
  /** Called once, in the moment in which an open line is gone, whoever ended it. */
  readonly onLost: (reason: Error) => void
}

/** Resolves when events can be sent. Rejects with what went wrong; nothing is left open then. */
export async function openLine({ connect, dial, signal, onLost }: LineOptions): Promise<Line> {
  let client: Client | undefined
  let opened = false
  let gone: Error | undefined
  let answeredAt = 0
  let closing: Promise<void> | undefined
  const failed = Promise.withResolvers<never>()
  /** How the sends that are under way end early. */
  const inFlight = new Set<(reason: Error) => void>()

  const sockets = amqpSockets(dial, (error) => {
    if (!opened && error !== undefined) lose(error)
    else
      lose(
        new ForeshockError('unreachable', `the connection to the broker broke${error === undefined ? '' : `: ${error.message}`}`, {
          cause: error,
        }),
      )
  })

  function lose(reason: Error): void {
    if (gone !== undefined) return
    gone = reason
    sockets.destroy()
    closing ??= settled(client?.close())
    if (opened) onLost(reason)
    else failed.reject(reason)
    // A send that lost its connection is told nothing by the SDKs and would wait for its deadline.
    for (const end of inFlight) end(reason)
  }

  async function attach(): Promise<void> {
    client = await connect(sockets.Socket)
    if (gone !== undefined) {
      closing = settled(client.close())
      throw gone
    }
    try {
      await client.open(signal)
    } catch (error) {
      throw gone ?? error
    }
  }

  const giveUp = (): void => lose(new ForeshockError('unreachable', 'the broker did not open a link in time', { cause: signal.reason }))
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    if (signal.aborted) giveUp()
    await Promise.race([attach(), failed.promise])
    if (gone !== undefined) throw gone
    opened = true
  } catch (error) {
    lose(error instanceof Error ? error : new TypeError(String(error)))
    throw error
  } finally {
    signal.removeEventListener('abort', giveUp)
  }

  return {
    async send(event, signal) {
      if (client === undefined || gone !== undefined) throw gone ?? new TypeError('a line is open once it is handed out')
      const sending = new AbortController()
      const ended = Promise.withResolvers<never>()
      const begun = performance.now()
      // The SDKs heed their signal in most states, but not while a token is fetched.
      const end = (reason: unknown): void => {
        ended.reject(reason)
        sending.abort(reason)
      }
      // Nothing at all came back since: a connection whose other end vanished without a word looks like this for minutes.
      const suspect = (): void => {
        if (answeredAt < begun) lose(new ForeshockError('unreachable', 'the broker answers nothing any more'))
      }
      const onAbort = (): void => {
        end(signal.reason)
        if (isTimeout(signal.reason)) suspect()
      }
      signal.addEventListener('abort', onAbort, { once: true })
      inFlight.add(end)
      try {
        await Promise.race([client.send(event, sending.signal), ended.promise])
        answeredAt = performance.now()
      } catch (error) {
        if (sending.signal.aborted) throw sending.signal.reason
        if (meaningOf(error).code === 'timeout') suspect()
        else answeredAt = performance.now()
        throw error
      } finally {
        inFlight.delete(end)
        signal.removeEventListener('abort', onAbort)
      }
    },
    async isOpen() {
      if (client === undefined || gone !== undefined) return false
      const turn = new AbortController()
      // What an open link has to do takes no I/O. Why one is not open is told by the opening of the next.
      const open = client.open(turn.signal).then(
        () => true,
        () => false,
      )
      const answer = await Promise.race([open, nextTurn(false)])
      if (!answer) turn.abort()
      return answer
    },
    lose,
    async close() {
      lose(new ForeshockError('unreachable', 'the sink was closed'))
      await Promise.race([closing, until(cleanUpMs)])
    },
  }
}

const isTimeout = (reason: unknown): boolean => reason instanceof Error && reason.name === 'TimeoutError'

/** Closing what is broken may fail; either way it is gone. */
async function settled(closing: Promise<void> | undefined): Promise<void> {
  await Promise.allSettled([closing])
}

/** The timer keeps no process alive. */
function until(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref()
  })
}
