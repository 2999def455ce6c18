import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadEntities, parseEntities } from '../../../src/simulator/broker/entities.ts'

test('every example in config/broker is good', async () => {
  const folder = new URL('../../../config/broker/', import.meta.url)
  const files = await readdir(folder)
  expect(files).toContain('demo.yaml')
  for (const file of files) expect((await loadEntities(new URL(file, folder).pathname)).queues.length).toBeGreaterThan(0)
})

test('without a file there is one entity of each kind', async () => {
  const entities = await loadEntities()
  expect([entities.eventHubs.length, entities.queues.length, entities.topics.length].every((count) => count > 0)).toBe(true)
})

test.each([undefined, new URL('../../../config/broker/demo.yaml', import.meta.url).pathname])(
  'has what the examples with a connection string name (%s)',
  async (file) => {
    const { queues, topics } = await loadEntities(file)
    const folder = new URL('../../../config/', import.meta.url)
    const named: string[] = []
    for (const example of ['service-bus.yaml', 'control-rbac.yaml', 'control-signed.yaml']) {
      const text = await readFile(new URL(example, folder), 'utf8')
      named.push(...[...text.matchAll(/^ +(?:queue|topic): ([\w-]+)/gm)].map(([, name]) => name ?? ''))
    }
    expect(named.length).toBeGreaterThan(3)
    expect([...queues, ...topics].map(({ name }) => name)).toEqual(expect.arrayContaining(named))
  },
)

test('what is left out has the defaults of Azure', () => {
  const { queues, eventHubs } = parseEntities({ queues: [{ name: 'q' }], eventHubs: [{ name: 'h' }] }, 'a test')
  expect(queues[0]).toMatchObject({ lockSeconds: 60, maxDeliveryCount: 10, requiresSession: false, duplicateDetectionSeconds: 0 })
  expect(eventHubs[0]).toMatchObject({ partitions: 4, maxMessageBytes: 1_048_576 })
})

test('every mistake is told at once, with its path', () => {
  const wrong = {
    queues: [{ name: 'q', lockSecond: 5 }, { name: 'Q' }, { name: ' bad' }],
    topics: [{ name: 't', subscriptions: [{ name: 's', filter: {} }] }],
  }
  expect(() => parseEntities(wrong, 'x.yaml')).toThrow(
    expect.objectContaining({
      code: 'config_invalid',
      message: expect.stringMatching(
        /x\.yaml[\s\S]*queues\[0\]\.lockSecond: unknown key[\s\S]*queues\[2\]\.name[\s\S]*filter: at least one/,
      ),
    }),
  )
})

test('a name may stand only once, whatever its kind and case', () => {
  expect(() => parseEntities({ queues: [{ name: 'Same' }], topics: [{ name: 'same' }] }, 'x')).toThrow(/same is there twice/)
  expect(() => parseEntities({ topics: [{ name: 't', subscriptions: [{ name: 'a' }, { name: 'A' }] }] }, 'x')).toThrow(/twice/)
})

test('a file that cannot be read, and one that is no YAML, are told apart', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'broker-'))
  const file = join(folder, 'broken.yaml')
  await writeFile(file, 'queues: [')
  await expect(loadEntities(file)).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining('no valid YAML') })
  await expect(loadEntities(join(folder, 'none.yaml'))).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('cannot be read'),
  })
  await rm(folder, { recursive: true })
})
