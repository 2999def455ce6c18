/** The least that polls: node:http with keep-alive, JSON.parse, setInterval. What the forwarder's memory and CPU are compared with. */
import { Agent, get } from 'node:http'

const agent = new Agent({ keepAlive: true })
const poll = () => {
  get(`${process.argv[2]}/metadata/scheduledevents?api-version=2020-07-01`, { agent, headers: { metadata: 'true' } }, (response) => {
    const chunks = []
    response.on('data', (chunk) => chunks.push(chunk))
    response.on('end', () => JSON.parse(Buffer.concat(chunks).toString()))
  })
}
poll()
setInterval(poll, 1000)
