import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServiceBusClient } from '@azure/service-bus'
import { startBroker } from '../src/simulator/broker/broker.ts'
import { percentile, type BenchRow } from './numbers.ts'
import { startBareReceiver, startForwarder } from './program.ts'

const ways = ['through', 'posts', 'reads'] as const
const rounds = 100
const warmUp = 10
/** An approval is two requests, and the forwarder sends at most four a second: IMDS has a budget for the whole machine. */
const gapMs = 550
const eventId = 'C7061BAC-AFDC-4513-B24B-AA5F13A16123'

/**
 * From a message being sent to the control queue to its POST reaching IMDS, through the gate, a fresh read of IMDS and a record; in turn with two
 * bare receivers of the same SDK, one that posts at once and one that reads IMDS first. All receive from one local broker.
 */
export async function approval(): Promise<BenchRow[]> {
  const imds = await startApprovalImds()
  await using broker = await startBroker({ entities: { queues: ways.map((name) => ({ name })) } })
  const connectionString = broker.connectionString()
  const forwarder = await startForwarder({
    imds: { endpoint: imds.url },
    sinks: [],
    control: { queue: 'through', auth: { type: 'connection-string', connectionString } },
    approvals: { rateLimit: { approvals: 10_000, perSeconds: 60 } },
  })
  const bare = [
    startBareReceiver(connectionString, 'posts', imds.url, 'post'),
    startBareReceiver(connectionString, 'reads', imds.url, 'read'),
  ]
  const client = new ServiceBusClient(connectionString)
  const senders = new Map(ways.map((way) => [way, client.createSender(way)]))
  const samples = { through: [] as number[], posts: [] as number[], reads: [] as number[] }
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const way of ways) {
      const posted = imds.nextPost()
      const begun = performance.now()
      await senders.get(way)?.sendMessages({ body: { command: 'approve', eventId, requestedBy: 'bench' }, messageId: `${way}-${round}` })
      const took = (await posted) - begun
      if (round >= 0) samples[way].push(took)
    }
    await sleep(gapMs)
  }
  await client.close()
  await Promise.all([forwarder, ...bare].map((running) => running.stop()))
  imds.close()
  const against = (way: 'posts' | 'reads', what: string): BenchRow[] =>
    [['p50', 0.5] as const, ['p99', 0.99] as const].map(([name, share]) => ({
      what: `${what}, ${name}`,
      foreshock: percentile(samples.through, share),
      bare: percentile(samples[way], share),
      unit: 'ms',
    }))
  return [...against('posts', 'approval sent to POST'), ...against('reads', 'the same, bare reads first')]
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
