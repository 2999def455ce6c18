import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { openNamespace } from '../simulator/broker/namespace.ts'
import { play, scenarioOf } from '../simulator/imds/play.ts'
import { approval, openStage, type Stage } from './stage.ts'

const vms = Array.from({ length: 20 }, (_, index) => `web_${index}`)
/** One reboot for each machine. */
const idOf = (vm: string): string => `${vm.padStart(8, '0').replace(/[^0-9]/g, '0')}-0000-0000-0000-000000000000`.toUpperCase()

const namespaces: Awaited<ReturnType<typeof openNamespace>>[] = []
afterEach(async () => {
  for (const namespace of namespaces.splice(0)) await namespace[Symbol.asyncDispose]()
})

/** Twenty forwarders, each in front of its own IMDS endpoint of one scale set, all on one broker. */
async function openFleet(
  entities: Parameters<typeof openNamespace>[0],
  control: (vm: string) => object,
  approvals: object = {},
): Promise<Stage[]> {
  const namespace = await openNamespace(entities)
  namespaces.push(namespace)
  const scenario = scenarioOf({
    vms: vms.map((name) => ({ name })),
    events: vms.map((vm) => ({ id: idOf(vm), type: 'Reboot', source: 'User', resources: [vm] })),
  })
  const imds = await play(scenario)
  return await Promise.all(
    vms.map((name, vm) =>
      openStage({
        imds,
        namespace,
        vm,
        control: control(name),
        approvals,
        config: { imds: { endpoint: imds.urls[vm], pollIntervalMs: 1000 } },
      }),
    ),
  )
}

async function untilDone(fleet: readonly Stage[], paths: readonly string[]): Promise<Record<string, number>> {
  const [first] = fleet
  if (first === undefined) throw new Error('a fleet was expected')
  while (paths.some((path) => first.namespace.broker.count(path) > 0)) await sleep(50)
  const posts: Record<string, number> = {}
  for (const { eventIds } of first.imds.posts) for (const id of eventIds) posts[id] = (posts[id] ?? 0) + 1
  return posts
}

const everyoneOnce = Object.fromEntries(vms.map((vm) => [idOf(vm), 1]))

test('a session per VM: each machine gets what is for it, whoever else waits at the queue', async () => {
  const fleet = await openFleet({ queues: [{ name: 'approvals', requiresSession: true }] }, () => ({ session: 'vm' }))
  for (const vm of vms) await fleet[0]?.send({ body: approval({ eventId: idOf(vm) }), sessionId: vm })
  expect(await untilDone(fleet, ['approvals'])).toEqual(everyoneOnce)
})

test('a shared queue: any machine relays for the group, each approval once', async () => {
  const fleet = await openFleet({ queues: [{ name: 'approvals' }] }, () => ({}), { events: 'any' })
  for (const vm of vms) await fleet[0]?.send({ body: approval({ eventId: idOf(vm) }) })
  expect(await untilDone(fleet, ['approvals'])).toEqual(everyoneOnce)
})

test('a subscription per VM: every machine sees every message, and relays its own', async () => {
  const subscriptions = vms.map((name) => ({ name, filter: { subject: name } }))
  const fleet = await openFleet({ topics: [{ name: 'approvals', subscriptions }] }, (subscription) => ({
    queue: undefined,
    topic: 'approvals',
    subscription,
  }))
  for (const vm of vms) await fleet[0]?.send({ body: approval({ eventId: idOf(vm) }), subject: vm })
  const paths = vms.map((vm) => `approvals/Subscriptions/${vm}`)
  expect(await untilDone(fleet, paths)).toEqual(everyoneOnce)
})
