import { get } from 'node:http'
import { createImdsClient } from '../../src/imds/client.ts'

/** Asks the endpoint once as any program would, which follows NODE_USE_ENV_PROXY, and then as foreshock does. */
const [, , endpoint = ''] = process.argv
const viaEnvironment = await new Promise((resolve, reject) => {
  get(endpoint, (response) => {
    response.resume()
    resolve(response.statusCode)
  }).on('error', reject)
})
const client = createImdsClient({ endpoint, apiVersion: '2020-07-01', agent: 'foreshock/test' })
const events = await client.getEvents()
const approval = await client.startRequests({ eventIds: ['A'], incarnation: null })
await client.close()
process.stdout.write(JSON.stringify({ viaEnvironment, events, approval }))
