import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServiceBusClient } from '@azure/service-bus'
import { startBroker } from '../src/simulator/broker/broker.ts'
import { percentile, type BenchRow } from './numbers.ts'
import { startBareReceiver, startForwarder } from './program.ts'

const rounds = 100
const warmUp = 10
/** An approval is two requests, and the forwarder sends at most four a second: IMDS has a budget for the whole machine. */
const gapMs = 550
const eventId = 'C7061BAC-AFDC-4513-B24B-AA5F13A16123'

/**
 * From a message being sent to the control queue to its POST reaching IMDS, through the gate, a fresh read of IMDS and a durable record; in turn
 * with a bare receiver of the same SDK that posts at once. Both read from one local broker.
 */
export async function approval(): Promise<BenchRow[]> {
  const imds = await startApprovalImds()
  await using broker = await startBroker({ entities: { queues: [{ name: 'through' }, { name: 'bare' }] } })
  const connectionString = broker.connectionString()
  const forwarder = await startForwarder({
    imds: { endpoint: imds.url },
    sinks: [],
    control: { queue: 'through', auth: { type: 'connection-string', connectionString } },
    approvals: { rateLimit: { approvals: 10_000, perSeconds: 60 } },
  })
  const bare = startBareReceiver(connectionString, 'bare', imds.url)
  const client = new ServiceBusClient(connectionString)
  const senders = { through: client.createSender('through'), bare: client.createSender('bare') }
  const samples = { through: [] as number[], bare: [] as number[] }
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const which of ['through', 'bare'] as const) {
      const posted = imds.nextPost()
      const begun = performance.now()
      await senders[which].sendMessages({ body: { command: 'approve', eventId, requestedBy: 'bench' }, messageId: `${which}-${round}` })
      const took = (await posted) - begun
      if (round >= 0) samples[which].push(took)
    }
    await sleep(gapMs)
  }
  await client.close()
  await Promise.all([forwarder.stop(), bare.stop()])
  imds.close()
  const row = (name: string, share: number): BenchRow => ({
    what: `approval sent to POST, ${name}`,
    foreshock: percentile(samples.through, share),
    bare: percentile(samples.bare, share),
    unit: 'ms',
  })
  return [row('p50', 0.5), row('p99', 0.99)]
}

/** One reboot that stays Scheduled, however often it is approved. */
async function startApprovalImds(): Promise<{ url: string; nextPost(): Promise<number>; close(): void }> {
  let posted: ((at: number) => void) | undefined
  const document = JSON.stringify({
    DocumentIncarnation: 1,
    Events: [
      {
        EventId: eventId,
        EventStatus: 'Scheduled',
        EventType: 'Reboot',
        ResourceType: 'VirtualMachine',
        Resources: ['web_0'],
        NotBefore: new Date(Date.now() + 3_600_000).toUTCString(),
        EventSource: 'User',
        DurationInSeconds: -1,
      },
    ],
  })
  const instance = JSON.stringify({
    name: 'web_0',
    vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
    resourceId: '/subscriptions/0/virtualMachines/web_0',
  })
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      posted?.(performance.now())
      request.resume().on('end', () => response.end())
      return
    }
    response.setHeader('content-type', 'application/json')
    response.end(request.url?.startsWith('/metadata/instance') === true ? instance : document)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    nextPost: () => new Promise((resolve) => (posted = resolve)),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
