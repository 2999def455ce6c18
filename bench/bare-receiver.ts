import { ServiceBusClient } from '@azure/service-bus'
import { Pool } from 'undici'

/** What an approver needs at least: the SDK, and a POST for each message at once, without any check or record. */
const [connectionString = '', queue = '', imds = ''] = process.argv.slice(2)
const pool = new Pool(imds)
const receiver = new ServiceBusClient(connectionString).createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 })
receiver.subscribe(
  {
    async processMessage(message) {
      const answer = await pool.request({
        path: '/metadata/scheduledevents?api-version=2020-07-01',
        method: 'POST',
        headers: { Metadata: 'true' },
        body: JSON.stringify({ StartRequests: [{ EventId: String(Reflect.get(Object(message.body), 'eventId')) }] }),
      })
      await answer.body.dump()
      await receiver.completeMessage(message)
    },
    async processError({ error }) {
      throw error
    },
  },
  { autoCompleteMessages: false },
)
