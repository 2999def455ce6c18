import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { addressOf } from './address-of.ts'

export type RawAnswer = (socket: Socket) => void

export interface RawEndpoint extends AsyncDisposable {
  readonly origin: string
  /** Every request as it came: head and body. */
  readonly requests: string[]
  connections(): number
}

/** A TCP server that gives the n-th request the n-th answer, the last one again and again: for what no HTTP server would send. */
export function rawEndpoint(...answers: [RawAnswer, ...RawAnswer[]]): Promise<RawEndpoint> {
  return rawEndpointOn(0, ...answers)
}

/** The same on a port of which is known that it is free. */
export async function rawEndpointOn(port: number, ...answers: [RawAnswer, ...RawAnswer[]]): Promise<RawEndpoint> {
  const requests: string[] = []
  const open = new Set<Socket>()
  let connections = 0
  const server: Server = createServer((socket) => {
    connections += 1
    open.add(socket)
    let text = ''
    socket.on('close', () => open.delete(socket))
    // A client that hangs up is part of many a test.
    socket.on('error', () => {})
    socket.on('data', (data) => {
      text += data.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < end + 4 + length) return
      requests.push(text)
      text = ''
      const answer = answers[Math.min(requests.length, answers.length) - 1]
      answer?.(socket)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${addressOf(server).port}`,
    requests,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}

/** A whole and correct HTTP/1.1 answer. */
export function reply(status: number, body: string | Buffer = '', headers: Readonly<Record<string, string>> = {}): RawAnswer {
  const bytes = Buffer.from(body)
  const lines = Object.entries({ 'content-length': String(bytes.length), ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return (socket) => {
    socket.write(Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`, 'latin1'), bytes]))
  }
}
