import { createServer, type RequestListener, type Server } from 'node:http'
import { ForeshockError } from '../../../sinks/error.ts'

/** Where nothing listens: a port that is taken, forbidden, or on an address that is not ours. */
const hopeless = new Set(['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'])

/** Starts an HTTP server; port 0 picks a free one. Throws `unreachable` where the port cannot be had. */
export function listen(listener: RequestListener, port: number, host: string): Promise<Server> {
  const server = createServer(listener)
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      if (!hopeless.has(cause.code ?? '')) return reject(cause)
      const message = `cannot listen on ${host}:${port} (${cause.code}): choose another port, or 0 for any free one`
      reject(new ForeshockError('unreachable', message, { cause }))
    })
    server.listen(port, host, () => {
      server.removeAllListeners('error')
      resolve(server)
    })
  })
}

/** Stops listening and cuts every connection, also those that hang on purpose. */
export function shut(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

export function urlOf(server: Server): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected a TCP server that listens')
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return `http://${host}:${address.port}`
}
