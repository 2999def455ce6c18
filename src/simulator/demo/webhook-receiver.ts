import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { z } from 'zod'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'

/** As much of a CloudEvent as the story needs. */
const cloudEvent = z.custom<CloudEvent>(
  (value) => z.looseObject({ id: z.string(), type: z.string(), data: z.looseObject({}) }).safeParse(value).success,
)

export function parseCloudEvent(value: unknown): CloudEvent {
  return cloudEvent.parse(value)
}

/** A receiver of structured CloudEvents on loopback, as somebody's operations tooling would run one. */
export async function startWebhookReceiver(onEvent: (event: CloudEvent) => void): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    json(request)
      .then((body) => {
        onEvent(parseCloudEvent(body))
        response.writeHead(204).end()
      })
      .catch(() => response.writeHead(400).end('expected a structured CloudEvent\n'))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
