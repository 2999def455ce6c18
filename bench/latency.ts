import { Agent } from 'undici'
import { document } from './event.ts'
import { startBenchImds } from './imds.ts'
import { percentile, type BenchRow } from './numbers.ts'
import { startForwarder } from './program.ts'
import { startBenchReceiver } from './receiver.ts'

const rounds = 400

/**
 * From the moment IMDS has handed out a changed document to the moment the webhook has the event, with durable writes in between; in turn with a
 * bare undici POST of an event of the same size to the same receiver. How long a change waits for the next poll is the interval's, not counted.
 */
export async function latency(): Promise<BenchRow[]> {
  const imds = await startBenchImds()
  const receiver = await startBenchReceiver()
  const forwarder = await startForwarder({
    imds: { endpoint: imds.url, pollIntervalMs: 100 },
    sinks: [{ name: 'hook', type: 'webhook', url: receiver.url }],
  })
  // The `started` event of the forwarder itself.
  await receiver.next()
  const agent = new Agent()
  const through: number[] = []
  const bare: number[] = []
  for (let round = 0; round < rounds; round++) {
    const arrived = receiver.next()
    const served = await imds.serve(document(round))
    through.push((await arrived) - served)
    const received = receiver.next()
    const begun = performance.now()
    const answer = await agent.request({
      origin: new URL(receiver.url).origin,
      path: '/hook',
      method: 'POST',
      headers: { 'content-type': 'application/cloudevents+json' },
      body: 'x'.repeat(1100),
    })
    await answer.body.dump()
    bare.push((await received) - begun)
  }
  await forwarder.stop()
  await agent.close()
  receiver.close()
  imds.close()
  return [
    { what: 'change to webhook, p50', foreshock: percentile(through, 0.5), bare: percentile(bare, 0.5), unit: 'ms' },
    { what: 'change to webhook, p99', foreshock: percentile(through, 0.99), bare: percentile(bare, 0.99), unit: 'ms' },
  ]
}
