import { startBroker } from '../src/simulator/broker/broker.ts'

/** The local broker in a process of its own, so that it takes no turn from what is measured. Told `{ entity, count }`, it answers when there are so many. */
const broker = await startBroker({
  entities: { eventHubs: [{ name: 'hub' }], topics: [{ name: 'topic' }] },
  now: () => performance.timeOrigin + performance.now(),
})

process.on('message', (asked: { readonly entity: string; readonly count: number }) => {
  void (async () => {
    const received = await broker.waitForMessages(asked.entity, asked.count, { signal: new AbortController().signal })
    process.send?.({ ...asked, at: received.at(-1)?.at ?? 0 })
  })()
})
process.on('disconnect', () => void broker.close())
process.send?.({ connectionString: broker.connectionString() })
