import { ServiceBusClient } from '@azure/service-bus'
import { Pool } from 'undici'

/** What an approver needs at least: the SDK, and a POST for each message at once, without any check or record; `read`: after a look at IMDS. */
const [connectionString = '', queue = '', imds = '', first = ''] = process.argv.slice(2)
const pool = new Pool(imds)
const path = '/metadata/scheduledevents?api-version=2020-07-01'
const headers = { Metadata: 'true' }
const receiver = new ServiceBusClient(connectionString).createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 })
receiver.subscribe(
  {
    async processMessage(message) {
      if (first === 'read') {
        const document = await pool.request({ path, method: 'GET', headers })
        await document.body.json()
      }
      const answer = await pool.request({
        path,
        method: 'POST',
        headers,
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
