import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

export interface TcpServer {
  readonly port: number
  stop(): Promise<void>
}

/** A bare TCP server on a free port of 127.0.0.1, for bytes that no HTTP library would send or show. */
export async function startTcpServer(onConnection: (socket: Socket) => void): Promise<TcpServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // A peer that goes away is part of what is tested.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected an address with a port')
  return {
    port: address.port,
    async stop() {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}
