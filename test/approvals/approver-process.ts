import { createApprovals } from '../../src/approvals/approvals.ts'
import { parseConfig } from '../../src/config/load.ts'
import type { Identity } from '../../src/events/identity.ts'
import { createImdsClient, type ImdsClient } from '../../src/imds/client.ts'
import { emptyState } from '../../src/lifecycle/remembered.ts'
import { createLog } from '../../src/log.ts'
import { createObserver } from '../../src/observer.ts'
import { openDatabase } from '../../src/outbox/database.ts'
import { createStore } from '../../src/outbox/store.ts'
import { createPublisher } from '../../src/publisher.ts'

/**
 * The inbound half as a process of its own: `node approver-process.ts CONFIG STEP`. Kills itself, as kill -9 would, when it comes to STEP:
 * received, record, recorded, posted or outcome; with `none` it goes on until it is killed.
 */
const [text = '', step = 'none'] = process.argv.slice(2)
const at = (reached: string): void => {
  if (reached === step) process.kill(process.pid, 'SIGKILL')
}

const now = Date.now
const log = await createLog('silent')
const config = await parseConfig(text, { env: {}, file: null })
const store = createStore(openDatabase(config.state.path, { now, log }), { now })
const imds = createImdsClient({ ...config.imds, agent: 'test' })
const identity: Identity = {
  vmName: 'web_0',
  vmId: '11111111-2222-3333-4444-555555555555',
  resourceId: '/subscriptions/0/virtualMachines/web_0',
  scaleSetId: null,
  source: null,
  location: null,
  zone: null,
  faultDomain: null,
  updateDomain: null,
  scaleSet: null,
  tags: {},
}
const publisher = createPublisher({
  store,
  sinks: config.sinks,
  prefix: 'foreshock',
  identity: () => identity,
  now,
  wake: () => {},
})
const observer = createObserver({
  publisher,
  remembered: emptyState,
  bootId: null,
  identity: () => identity,
  decideIdentity: () => identity,
  publish: 'all',
  scope: 'group',
  prefix: 'foreshock',
  now,
  onTransition: () => {},
  onAnomaly: () => {},
})
const client: Pick<ImdsClient, 'getEvents' | 'startRequests'> = {
  getEvents(options) {
    at('received')
    return imds.getEvents(options)
  },
  async startRequests(request, options) {
    const result = await imds.startRequests(request, options)
    at('posted')
    return result
  },
}
const approvals = await createApprovals({
  config,
  client,
  store: {
    ...store,
    recordApproval(...recorded) {
      at('record')
      store.recordApproval(...recorded)
      at('recorded')
    },
  },
  observer: {
    ...observer,
    settle(settled) {
      observer.settle(settled)
      at('outcome')
    },
  },
  identity: () => identity,
  imds: () => ({ state: 'ok', since: 0 }),
  env: {},
  now,
  random: Math.random,
  log,
  onOutcome: () => {},
})
approvals.start()
