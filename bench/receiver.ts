import { createServer } from 'node:http'

export interface BenchReceiver {
  readonly url: string
  /** Resolves with the `performance.now()` at which the body of the next POST was there. */
  next(): Promise<number>
  close(): void
}

export async function startBenchReceiver(): Promise<BenchReceiver> {
  let arrived: ((at: number) => void) | undefined
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      arrived?.(performance.now())
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`,
    next: () => new Promise((resolve) => (arrived = resolve)),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
