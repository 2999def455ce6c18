import { once } from 'node:events'
import { lookup } from 'node:dns'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { SinkContext } from '../contract.ts'
import { proxyFor, tunnelThrough } from '../proxy.ts'
import { bare, type Dial } from './carrier.ts'
import { upgrade } from './websocket.ts'

/** Where a broker listens. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  readonly transport: 'amqp' | 'websockets'
}

/**
 * Connects to a broker: TCP, TLS with the certificates that Node trusts, and the WebSocket where that is the transport. Only WebSockets go
 * through a proxy, as with Microsoft's own clients: proxies rarely let anybody through to 5671.
 */
export function dialer(target: Target, env: SinkContext['env']): Dial {
  const { host, port, tls, transport } = target
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return async (signal) => {
    const proxy = transport === 'websockets' ? proxyFor(new URL(`${tls ? 'wss' : 'ws'}://${authority}`), env) : undefined
    const plain = proxy === undefined ? await connectTcp(host, port, signal) : await tunnelThrough(proxy, authority, { lookup, signal })
    // Else the small frames of AMQP wait for each other's acknowledgement: pauses of 40 ms.
    plain.setNoDelay(true)
    const stream = tls ? await secure(plain, host, signal) : plain
    if (transport === 'amqp') return { stream, framing: bare }
    return { stream, framing: await upgrade(stream, authority, signal) }
  }
}

function connectTcp(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return connected(connect({ host, port }), 'connect', signal)
}

async function secure(plain: Socket, host: string, signal: AbortSignal): Promise<Socket> {
  const stream = connectTls({ socket: plain, host, ...(isIP(host) === 0 ? { servername: host } : {}) })
  return await connected(stream, 'secureConnect', signal)
}

async function connected<S extends Socket>(stream: S, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<S> {
  try {
    await once(stream, event, { signal })
    return stream
  } catch (error) {
    stream.on('error', () => {})
    stream.destroy()
    throw error
  }
}
