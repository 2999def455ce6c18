import { createServer } from 'node:http'

export interface BenchImds {
  readonly url: string
  /** Serves this document from now on; resolves with the `performance.now()` at which it was first handed out. */
  serve(document: unknown): Promise<number>
  /** Resolves with the `performance.now()` of the next GET for events. */
  nextPoll(): Promise<number>
  close(): void
}

/** As little of IMDS as a measurement needs, so that it costs next to nothing itself. */
export async function startBenchImds(): Promise<BenchImds> {
  let body = JSON.stringify({ DocumentIncarnation: 1, Events: [] })
  let served: ((at: number) => void) | undefined
  let polled: ((at: number) => void) | undefined
  const instance = JSON.stringify({
    name: 'web_0',
    vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
    resourceId: '/subscriptions/0/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/web_0',
  })
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.url?.startsWith('/metadata/instance') === true) {
      response.end(instance)
      return
    }
    polled?.(performance.now())
    response.end(body)
    served?.(performance.now())
    served = undefined
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    serve(document) {
      body = JSON.stringify(document)
      return new Promise((resolve) => (served = resolve))
    },
    nextPoll: () => new Promise((resolve) => (polled = resolve)),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
