import { openBareSender } from './bare-sender.ts'

/** A process that does nothing but keep the SDKs connected: what the forwarder's memory with its sinks is compared with. */
const [connectionString = '', ...entities] = process.argv.slice(2)
for (const entity of entities) if (entity === 'hub' || entity === 'topic') await openBareSender(entity, connectionString)
