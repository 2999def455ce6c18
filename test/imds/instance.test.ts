import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { readInstance, readInstancePatiently } from '../../src/imds/instance.ts'
import { httpEndpoint } from './http-endpoint.ts'
import { openClient } from './open-client.ts'
import { rawEndpoint, reply } from './raw-endpoint.ts'

const captured = await readFile(new URL('../documents/i01-instance-compute-doc.json', import.meta.url), 'utf8')
const nobody = {
  vmName: null,
  vmId: null,
  resourceId: null,
  scaleSetId: null,
  scaleSet: null,
  location: null,
  zone: null,
  faultDomain: null,
  updateDomain: null,
  tags: {},
}

test('The documented example is read whole', async () => {
  await using endpoint = await httpEndpoint((_, response) => response.end(captured))
  await using client = openClient(endpoint.origin)
  expect(await readInstance(client)).toEqual({
    kind: 'instance',
    instance: {
      vmName: 'examplevmname',
      vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
      resourceId:
        '/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/macikgo-test-may-23/providers/Microsoft.Compute/virtualMachines/examplevmname',
      scaleSetId:
        '/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/resource-group-name/providers/Microsoft.Compute/virtualMachineScaleSets/virtual-machine-scale-set-name',
      scaleSet: 'crpteste9vflji9',
      location: 'westus',
      zone: '3',
      faultDomain: '36',
      updateDomain: '42',
      tags: { baz: 'bash', foo: 'bar' },
    },
  })
  expect(endpoint.requests.map(({ url }) => url)).toEqual(['/metadata/instance/compute?api-version=2025-04-07&format=json'])
  expect(endpoint.requests[0]?.headers['metadata']).toBe('true')
})

test('A 400 means an unknown version: the old one is asked for', async () => {
  await using endpoint = await httpEndpoint((request, response) => {
    if (request.url?.includes('2021-02-01') === true) response.end('{"name":"web_1"}')
    else response.writeHead(400).end('{"error":"Bad request. api-version is invalid"}')
  })
  await using client = openClient(endpoint.origin)
  expect(await readInstance(client)).toEqual({ kind: 'instance', instance: { ...nobody, vmName: 'web_1' } })
  expect(endpoint.requests).toHaveLength(2)
})

test('Empty, missing and oddly typed values are null, never something made up', async () => {
  const odd = { name: '', vmId: 'v', location: null, zone: ['3'], platformFaultDomain: 2, virtualMachineScaleSet: '' }
  const tagsList = [
    { name: 'a', value: '1' },
    { name: '', value: 'x' },
    { name: 'b', value: 7 },
    null,
    'c',
    { name: '__proto__', value: 'p' },
  ]
  await using endpoint = await rawEndpoint(reply(200, JSON.stringify({ ...odd, tagsList })))
  await using client = openClient(endpoint.origin)
  const result = await readInstance(client)
  const tags = Object.fromEntries([
    ['a', '1'],
    ['__proto__', 'p'],
  ])
  expect(result).toEqual({ kind: 'instance', instance: { ...nobody, vmId: 'v', faultDomain: '2', tags } })
})

test('An instance of a uniform scale set names its set in its own id', async () => {
  const set = '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web'
  await using endpoint = await rawEndpoint(
    reply(200, JSON.stringify({ resourceId: `${set}/virtualMachines/7`, virtualMachineScaleSet: { id: '' } })),
    reply(
      200,
      JSON.stringify({
        resourceId: '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/web',
        vmScaleSetName: 'w',
      }),
    ),
  )
  await using client = openClient(endpoint.origin)
  expect(await readInstance(client)).toMatchObject({ instance: { scaleSetId: set } })
  expect(await readInstance(client)).toMatchObject({ instance: { scaleSetId: null, scaleSet: 'w' } })
})

test.each(['[]', '{}', '"x"', '{"name":"","vmId":""}', '{"compute":{"name":"a"}}'])('%s is no instance', async (body) => {
  await using endpoint = await rawEndpoint(reply(200, body))
  await using client = openClient(endpoint.origin)
  expect(await readInstance(client)).toMatchObject({ kind: 'failure', reason: 'not_a_document' })
})

test('Patience outlasts what passes', async () => {
  await using endpoint = await rawEndpoint(reply(503), reply(404), (socket) => socket.destroy(), reply(200), reply(200, captured))
  await using client = openClient(endpoint.origin)
  const result = await readInstancePatiently(client, { maxWaitMs: 15_000, firstWaitMs: 5 })
  expect(result).toMatchObject({ kind: 'instance', instance: { vmName: 'examplevmname' } })
  expect(endpoint.requests).toHaveLength(5)
})

test('Patience is not for what stays: a redirect, a page, a refusal of both versions', async () => {
  for (const answer of [reply(302), reply(200, '<html>'), reply(403)]) {
    await using endpoint = await rawEndpoint(answer)
    await using client = openClient(endpoint.origin)
    expect(await readInstancePatiently(client, { maxWaitMs: 15_000, firstWaitMs: 5 })).toMatchObject({ kind: 'failure' })
    expect(endpoint.requests).toHaveLength(1)
  }
})

test('Patience ends with the last failure when the time is over', async () => {
  await using endpoint = await rawEndpoint(reply(500))
  await using client = openClient(endpoint.origin)
  expect(await readInstancePatiently(client, { maxWaitMs: 1_000, firstWaitMs: 20 })).toMatchObject({ kind: 'failure', status: 500 })
  expect(endpoint.requests.length).toBeGreaterThan(1)
})

test('Patience ends at once with the reason of an abort', async () => {
  await using endpoint = await rawEndpoint(reply(500))
  await using client = openClient(endpoint.origin)
  const leave = new AbortController()
  const waiting = readInstancePatiently(client, { maxWaitMs: 600_000, firstWaitMs: 600_000, signal: leave.signal })
  await expect.poll(() => endpoint.requests.length).toBe(1)
  leave.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})
