import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { openBareSender } from './bare-sender.ts'
import { eventOf } from './event.ts'

/** The least that forwards and loses nothing: polls, and where the document is another one, writes it to the disk, then sends an event. */
const [entity = '', connectionString = '', imds = '', file = ''] = process.argv.slice(2)
if (entity !== 'hub' && entity !== 'topic') throw new TypeError(`expected hub or topic, got ${entity}`)
const sender = await openBareSender(entity, connectionString)
const pool = new Pool(imds)
const log = openSync(file, 'w')
let last = ''
for (let number = 0; ; number += 1) {
  const answer = await pool.request({
    path: '/metadata/scheduledevents?api-version=2020-07-01',
    method: 'GET',
    headers: { Metadata: 'true' },
  })
  const text = await answer.body.text()
  const changed = last !== '' && text !== last
  last = text
  if (changed) {
    const event = { ...eventOf(number), data: JSON.parse(text) }
    writeSync(log, JSON.stringify(event))
    fdatasyncSync(log)
    await sender.send(event)
  }
  await sleep(100)
}
