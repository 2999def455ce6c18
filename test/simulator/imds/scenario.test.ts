import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { ForeshockError } from '../../../sinks/error.ts'
import { loadScenario, parseScenario, readyScenarios, scenarioJsonSchema } from '../../../src/simulator/imds/scenario-file.ts'
import { afterwards } from './play.ts'

const folder = join(import.meta.dirname, '../../../config')

function failure(text: string): ForeshockError {
  try {
    parseScenario(text, 'x.yaml')
  } catch (error) {
    if (error instanceof ForeshockError) return error
    throw error
  }
  throw new Error('expected a ForeshockError, got a scenario')
}

const mistakes = (text: string): string[] =>
  failure(text)
    .message.split('\n')
    .slice(1)
    .map((line) => line.trim())

const twoEvents = (name: string): string => `{ name: ${name}, events: [{ type: Freeze, resources: [] }, { type: Freeze, resources: [] }] }`

describe('a scenario file', () => {
  it('with mistakes of every kind tells all of them with their paths', () => {
    const error = failure(`
name: Not Good
vms: [{ name: web_0 }, { name: WEB_0 }]
events:
  - { type: 5, resources: [web_0], cancelAfterSeconds: 1000 }
  - { type: Freeze, resources: [web_0], cancelAfterSeconds: 900, notice: 1 }
  - { type: Freeze, resources: [web_0], reschedule: [{ afterSeconds: 300, noticeSeconds: 60 }, { afterSeconds: 360, noticeSeconds: 1 }] }
  - { type: Reboot, resources: [web_0], status: Started, noticeSeconds: 0 }
documents: [{ atSeconds: 5, body: x, document: {} }, { atSeconds: 4 }]
restarts: [{ atSeconds: 5 }]
faults: [{ kind: sulk, atSeconds: 0, forSeconds: 1 }, { kind: status, atSeconds: 0, forSeconds: 1, delayMs: 4 }]
`)
    expect(error.code).toBe('scenario_invalid')
    expect(error.message).toMatch(/^15 mistakes in the scenario x\.yaml:/)
    const told = error.message
    for (const path of [
      'name: expected lower-case .*got "Not Good"',
      'vms\\[1\\]\\.name: expected each name once, got "WEB_0"',
      'events\\[0\\]\\.type: expected string, got 5',
      'events\\[1\\]\\.notice: unknown key',
      'events\\[1\\]\\.cancelAfterSeconds: expected less than 900',
      'events\\[2\\]\\.reschedule\\[1\\]\\.afterSeconds: expected less than 360',
      'events\\[3\\]\\.noticeSeconds: expected nothing here',
      'events: expected either events or documents, got both',
      'documents\\[0\\]: expected one of .* got document and body',
      'documents\\[1\\]: expected one of .* got none',
      'documents\\[1\\]\\.atSeconds: expected at least 5',
      'restarts: expected none',
      'faults\\[0\\]\\.kind: expected a kind: status.*got "sulk"',
      'faults\\[1\\]\\.status: missing',
      'faults\\[1\\]\\.delayMs: unknown key',
    ]) {
      expect(told).toMatch(new RegExp(`^  ${path}`, 'm'))
    }
  })

  it('that is no YAML, or no object, is a mistake of its own', () => {
    expect(mistakes('name: [')[0]).toMatch(/line 1/)
    expect(mistakes('name: a\nname: b\nevents: []')[0]).toMatch(/line 2, column 1: .*already/)
    expect(mistakes('')[0]).toMatch(/expected object/)
    expect(mistakes('{ name: a }')).toEqual(['events: expected either events or documents, got neither'])
  })

  it('gives events ids that look like those of Azure, the same in each run, another one for each place and name', () => {
    const ids = [...parseScenario(twoEvents('a'), 'a').events, ...parseScenario(twoEvents('b'), 'b').events].map((event) => event.id)
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}$/)
    expect(parseScenario(twoEvents('a'), 'a').events.map((event) => event.id)).toEqual(ids.slice(0, 2))
    expect(parseScenario('{ name: a, events: [{ id: x1, type: Freeze, resources: [] }] }', 'a').events[0]?.id).toBe('x1')
  })

  it('takes the nominal notice of each type where none is given', () => {
    const types = ['Freeze', 'Reboot', 'Redeploy', 'Preempt', 'Terminate', 'Rebalance']
    const { events } = parseScenario(JSON.stringify({ name: 'a', events: types.map((type) => ({ type, resources: [] })) }), 'a')
    expect(events.map((event) => event.noticeSeconds)).toEqual([900, 900, 600, 30, 300, 900])
  })
})

describe('loading a scenario', () => {
  it('finds a ready one by its name and any other by its path', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'foreshock-scenario-'))
    afterwards(() => rm(directory, { recursive: true }))
    await writeFile(join(directory, 'mine.json'), '{ "name": "mine", "events": [] }')
    expect((await loadScenario('live-migration')).events).toHaveLength(1)
    expect((await loadScenario(join(directory, 'mine.json'))).name).toBe('mine')
  })

  it('lists the names when there is none of that name, and says why a file cannot be read', async () => {
    await expect(loadScenario('live-migraton')).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/cancelled, .*live-migration, .*got live-migraton/),
    })
    await expect(loadScenario('./nowhere.yaml')).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/nowhere\.yaml.*ENOENT/),
    })
  })

  it('knows each ready one by the name of its file, with a word on what happens', async () => {
    const files = (await readdir(join(folder, 'scenarios'))).toSorted()
    const ready = await readyScenarios()
    expect(ready.map(({ name }) => `${name}.yaml`)).toEqual(files)
    for (const { description } of ready) expect(description).toMatch(/\w+ .*\.$/)
  })
})

describe('the published schema', () => {
  it('is the one that the code checks with', async () => {
    await expect(`${JSON.stringify(scenarioJsonSchema(), null, 2)}\n`).toMatchFileSnapshot(join(folder, 'schemas/scenario.json'))
  })

  it('accepts every ready scenario and refuses an unknown key', async () => {
    const validate = new Ajv2020({ strict: false, formats: { base64: true } }).compile(scenarioJsonSchema())
    for (const { name } of await readyScenarios()) {
      const file: unknown = parse(await readFile(join(folder, 'scenarios', `${name}.yaml`), 'utf8'))
      expect(validate(file), `${name}: ${JSON.stringify(validate.errors)}`).toBe(true)
    }
    expect(validate({ name: 'a', events: [], evnts: [] })).toBe(false)
  })

  it('describes every key that a writer of scenarios meets', () => {
    const described = z.record(z.string(), z.looseObject({ description: z.string().min(10) }))
    const properties = z.object({ properties: described })
    const whole = properties.parse(scenarioJsonSchema()).properties
    expect(Object.keys(whole)).toContain('faults')
    expect(Object.keys(z.object({ items: properties }).parse(whole['events']).items.properties)).toContain('approvalDelaySeconds')
  })
})
