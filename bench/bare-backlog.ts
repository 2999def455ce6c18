import { openBareSender } from './bare-sender.ts'
import { eventOf } from './event.ts'

/** What a backlog costs at least: so many sends of the SDK, so many of them at once. */
const [entity = '', connectionString = '', count = '', concurrency = ''] = process.argv.slice(2)
if (entity !== 'hub' && entity !== 'topic') throw new TypeError(`expected hub or topic, got ${entity}`)
const sender = await openBareSender(entity, connectionString)
let next = 0
const lane = async (): Promise<void> => {
  while (next < Number(count)) {
    next += 1
    await sender.send(eventOf(next))
  }
}
await Promise.all(Array.from({ length: Number(concurrency) }, lane))
await sender.close()
