import { attachDatabase, openDatabase } from '../../src/outbox/database.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import { createStore } from '../../src/outbox/store.ts'
import { captureLog, outgoing } from './outbox-events.ts'

/** Another process on the same state file. `node outbox-process.ts ROLE PATH`; says what it did on stdout, and stays until it is killed. */
const [role = '', path = ''] = process.argv.slice(2)
const now = Date.now
const log = captureLog()
const say = (word: string): void => void process.stdout.write(`${word}\n`)

switch (role) {
  case 'hold':
    openDatabase(path, { now, log })
    say('open')
    setInterval(() => {}, 60_000)
    break
  case 'deliver': {
    const store = createStore(openDatabase(path, { now, log }), { now })
    store.commit({ state: { lifecycle: { epoch: 7 } }, events: [outgoing('first', { lane: 'l' }), outgoing('second', { lane: 'l' })] })
    const deliver = async () => {
      say('delivering')
      return await new Promise<never>(() => {})
    }
    createDispatcher({ store, sink: { deliver }, name: 'a', now, random: Math.random, log }).start()
    break
  }
  case 'replay': {
    const database = attachDatabase(path)
    say(String(createStore(database, { now }).replay({ sink: 'a' }).replayed))
    database.close()
    break
  }
  default:
    say(`expected hold, deliver or replay, got ${role}`)
}
