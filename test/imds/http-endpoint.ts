import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { addressOf } from './address-of.ts'

export interface HttpEndpoint extends AsyncDisposable {
  readonly origin: string
  readonly requests: IncomingMessage[]
  connections(): number
}

/** An HTTP server on a free port of the loopback. */
export async function httpEndpoint(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<HttpEndpoint> {
  const requests: IncomingMessage[] = []
  let connections = 0
  const server = createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${addressOf(server).port}`,
    requests,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
