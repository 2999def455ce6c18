import { setTimeout as sleep } from 'node:timers/promises'
import { startBenchImds } from './imds.ts'
import { percentile, type BenchRow } from './numbers.ts'
import { startBarePoller, startForwarder, usage } from './program.ts'
import { startBenchReceiver } from './receiver.ts'

const settleSeconds = 10
const measuredSeconds = 60

/** Resident memory and CPU per second of a quiet forwarder at a poll a second, side by side with the bare poller. */
export async function footprint(): Promise<BenchRow[]> {
  const imds = await startBenchImds()
  const receiver = await startBenchReceiver()
  const forwarder = await startForwarder({ imds: { endpoint: imds.url }, sinks: [{ name: 'hook', type: 'webhook', url: receiver.url }] })
  const poller = startBarePoller(imds.url)
  await sleep(settleSeconds * 1000)
  const before = [await usage(forwarder.pid), await usage(poller.pid)] as const
  await sleep(measuredSeconds * 1000)
  const after = [await usage(forwarder.pid), await usage(poller.pid)] as const
  await Promise.all([forwarder.stop(), poller.stop()])
  receiver.close()
  imds.close()
  return [
    { what: 'resident memory', foreshock: after[0].megabytes, bare: after[1].megabytes, unit: 'MB' },
    {
      what: 'CPU per second, 1 s poll',
      foreshock: (after[0].cpuMs - before[0].cpuMs) / measuredSeconds,
      bare: (after[1].cpuMs - before[1].cpuMs) / measuredSeconds,
      unit: 'ms',
    },
  ]
}

/** From the start of the process to its first poll, in turn with the bare poller. */
export async function start(): Promise<BenchRow> {
  const imds = await startBenchImds()
  const samples = { foreshock: [] as number[], bare: [] as number[] }
  for (let round = 0; round < 10; round++) {
    for (const which of ['foreshock', 'bare'] as const) {
      const polled = imds.nextPoll()
      const begun = performance.now()
      const running = which === 'bare' ? startBarePoller(imds.url) : await startForwarder({ imds: { endpoint: imds.url }, sinks: [] })
      samples[which].push((await polled) - begun)
      await running.stop()
    }
  }
  imds.close()
  return {
    what: 'start to first poll, p50',
    foreshock: percentile(samples.foreshock, 0.5),
    bare: percentile(samples.bare, 0.5),
    unit: 'ms',
  }
}
