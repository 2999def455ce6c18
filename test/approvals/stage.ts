import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage } from '@azure/service-bus'
import { afterEach } from 'vitest'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { parseConfig } from '../../src/config/load.ts'
import { createForwarder, type Forwarder } from '../../src/forwarder.ts'
import { createLog } from '../../src/log.ts'
import type { BrokerOptions } from '../../src/simulator/broker/broker.ts'
import { parseCloudEvent } from '../../src/simulator/demo/webhook-receiver.ts'
import { parseScenario } from '../../src/simulator/imds/scenario-file.ts'
import { startImdsSimulator, type ImdsSimulator } from '../../src/simulator/imds/server.ts'
import { openNamespace } from '../simulator/broker/namespace.ts'
import { startHttpReceiver } from '../support/http-receiver.ts'

type Namespace = Awaited<ReturnType<typeof openNamespace>>

export const eventId = 'C7061BAC-AFDC-4513-B24B-AA5F13A16123'

/** A reboot of web_0 that somebody asked for; a quarter of an hour away. */
export const reboot = { id: eventId, type: 'Reboot', source: 'User', resources: ['web_0'] }

export interface StageOptions {
  /** Keys of the scenario; one reboot of web_0 by default. */
  readonly scenario?: object
  readonly control?: object | null
  readonly approvals?: object
  readonly config?: object
  readonly entities?: BrokerOptions['entities']
  /** A stage of its own network, or that of another one. */
  readonly namespace?: Namespace
  readonly imds?: ImdsSimulator
  /** Which machine of the scenario this is. */
  readonly vm?: number
  readonly statePath?: string
  /** Left to the test. */
  readonly start?: false
}

export interface Stage {
  readonly imds: ImdsSimulator
  readonly namespace: Namespace
  readonly client: ServiceBusClient
  readonly forwarder: Forwarder
  readonly statePath: string
  /** Everything that the sink got, oldest first. */
  readonly events: readonly CloudEvent[]
  /** The first event of this kind that the sink gets, or got. */
  event(matches: (event: CloudEvent) => boolean): Promise<CloudEvent>
  /** The first that tells an approval with this code. */
  told(code: string): Promise<CloudEvent>
  send(message: Partial<ServiceBusMessage> & { readonly body: unknown }): Promise<void>
  /** The next message of a queue, completed; undefined where none comes in time. */
  take(queue: string, options?: { readonly dead?: boolean; readonly ms?: number }): Promise<ServiceBusReceivedMessage | undefined>
}

const defaultEntities: BrokerOptions['entities'] = {
  queues: [{ name: 'approvals', lockSeconds: 5 }, { name: 'replies' }],
}

const closers: (() => unknown)[] = []

afterEach(async () => {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
})

/** IMDS, broker, webhook receiver and a real forwarder in this process, all over real sockets; closed when the test is over. */
export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const log = await createLog(process.env['TEST_LOG'] ?? 'silent')
  const scenario = { name: 'test', vms: [{ name: 'web_0' }], events: [reboot], ...options.scenario }
  const imds =
    options.imds ??
    (await startImdsSimulator({ scenario: parseScenario(JSON.stringify(scenario), 'test.yaml'), log: await createLog('silent') }))
  if (options.imds === undefined) closers.push(() => imds.close())
  const namespace = options.namespace ?? (await openNamespace(options.entities ?? defaultEntities))
  if (options.namespace === undefined) closers.push(() => namespace[Symbol.asyncDispose]())
  const receiver = await startHttpReceiver()
  closers.push(() => receiver.stop())
  const folder = mkdtempSync(join(tmpdir(), 'foreshock-approvals-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const statePath = options.statePath ?? join(folder, 'state.db')

  const config = await parseConfig(
    JSON.stringify({
      imds: { endpoint: imds.urls[options.vm ?? 0], pollIntervalMs: 200 },
      state: { path: statePath },
      heartbeat: { intervalSeconds: 0 },
      admin: { listen: false },
      sinks: [{ name: 'hook', type: 'webhook', url: `${receiver.origin}/hook` }],
      ...(options.control === null ? {} : { control: controlOf(namespace, options.control) }),
      ...(options.approvals !== undefined && { approvals: options.approvals }),
      ...options.config,
    }),
    { env: {}, file: null },
  )
  const forwarder = await createForwarder({ config, log, bootId: null, env: {} })
  closers.push(() => forwarder.stop())
  if (options.start !== false) forwarder.start()

  const client = namespace.serviceBus()
  const sender = client.createSender('approvals')
  const events = (): CloudEvent[] => receiver.requests.map(({ body }) => parseCloudEvent(JSON.parse(body)))
  const event = async (matches: (event: CloudEvent) => boolean): Promise<CloudEvent> => {
    for (;;) {
      const next = receiver.nextRequest()
      const found = events().find(matches)
      if (found !== undefined) return found
      await next
    }
  }
  return {
    imds,
    namespace,
    client,
    forwarder,
    statePath,
    get events() {
      return events()
    },
    event,
    told: (code) => event(({ type, data }) => type.includes('.approval.') && data['code'] === code),
    async send(message) {
      await sender.sendMessages({ messageId: randomUUID(), ...message })
    },
    async take(queue, { dead = false, ms = 10_000 } = {}) {
      const link = client.createReceiver(queue, {
        maxAutoLockRenewalDurationInMs: 0,
        ...(dead && { subQueueType: 'deadLetter' as const }),
      })
      const [message] = await link.receiveMessages(1, { maxWaitTimeInMs: ms })
      if (message !== undefined) await link.completeMessage(message)
      await link.close()
      return message
    },
  }
}

/** The section `control` for a queue of this namespace. */
export function controlOf(namespace: Namespace, more: object = {}): object {
  return {
    queue: 'approvals',
    auth: { type: 'connection-string', connectionString: namespace.broker.connectionString() },
    pauseSeconds: 0.05,
    ...more,
  }
}

/** An unsigned approval. */
export const approval = (more: object = {}): Record<string, unknown> => ({
  command: 'approve',
  eventId,
  requestedBy: 'anna@contoso.example',
  ...more,
})
