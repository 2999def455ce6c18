import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { readYaml } from '../../src/config/yaml.ts'
import { loadEntities } from '../../src/simulator/broker/entities.ts'
import { parseScenario } from '../../src/simulator/imds/scenario-file.ts'

/** Each with the place of its first mistake. */
const broken: readonly (readonly [kind: string, place: string, text: string])[] = [
  ['a text after a quoted one', '1, column 32', 'authorization: "Bearer S3CR3T" token'],
  ['a key given twice', '3, column 1', 'url: x\ntoken: S3CR3T\ntoken: S3CR3T'],
  ['a secret as a key given twice', '2, column 1', 'S3CR3T: 1\nS3CR3T: 2'],
  ['an alias of nothing', '1, column 8', 'token: *S3CR3T'],
  ['an alias inside of its own anchor', '1, column 24', 'a: &S3CR3T { b: { c: [ *S3CR3T ] } }'],
  ['an alias with an anchor', '1, column 16', 'token: &S3CR3T *b'],
  ['an unknown tag', '1, column 8', 'token: !S3CR3T x'],
  ['an unknown tag of YAML', '1, column 8', 'token: !!S3CR3T x'],
  ['a value that does not fit its tag', '1, column 8', 'token: !!int S3CR3T'],
  ['a tag without its handle', '1, column 8', 'token: !e!S3CR3T x'],
  ['a directive', '1, column 1', '%S3CR3T foo\n---\na: 1'],
  ['a version of YAML', '1, column 7', '%YAML S3CR3T\n---\na: 1'],
  ['an escape', '1, column 9', String.raw`token: "\qS3CR3T"`],
  ['an escape with digits', '1, column 9', String.raw`token: "\uS3CR3T"`],
  ['an open single quote', '1, column 15', "token: 'S3CR3T"],
  ['an open double quote', '1, column 15', 'token: "S3CR3T'],
  ['an open bracket', '1, column 15', 'token: [S3CR3T'],
  ['an open brace', '1, column 15', 'token: {S3CR3T'],
  ['a value with a colon', '1, column 8', 'token: S3CR3T: b'],
  ['a key of two lines', '1, column 8', 'token: b\n S3CR3T: c'],
  ['a tab', '2, column 1', 'token:\n\tS3CR3T: c'],
  ['an object after a list', '2, column 1', '- a\nS3CR3T: b'],
  ['a block with a text in its head', '1, column 9', 'token: |S3CR3T\n x'],
  ['a reserved character', '1, column 8', 'token: @S3CR3T'],
  ['two documents', '2, column 1', 'a: b\n---\nS3CR3T: 1'],
  ['a list as a key', '1, column 3', '? [S3CR3T]\n: 2'],
]

/** Ten times what is anchored. */
const ten = (name: string): string => `[${Array(10).fill(`*${name}`).join(', ')}]`

describe('a mistake in YAML', () => {
  it.each(broken)('is told by its place and kind, never with what stands there: %s', (_, place, text) => {
    const read = readYaml(text)
    if (read.ok) throw new TypeError(`expected mistakes, got ${JSON.stringify(read.value)}`)
    expect(read.mistakes[0]).toMatch(new RegExp(`^line ${place}: \\S`))
    expect(read.mistakes.join('\n')).not.toMatch(/S3C/)
  })

  it('that is a bomb of aliases is told', () => {
    const bomb = `S3CR3T: &a [x]\nb: &b ${ten('a')}\nc: &c ${ten('b')}\nd: ${ten('c')}`
    expect(readYaml(bomb)).toEqual({ ok: false, mistakes: [expect.stringMatching(/^too many aliases/)] })
  })

  it('shows no secret, whatever file it stands in: configuration, scenario, entities of the broker', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'foreshock-yaml-'))
    try {
      for (const [, place, text] of broken) {
        const file = join(folder, 'entities.yaml')
        await writeFile(file, text)
        const told = await Promise.all([
          failureOf(() => parseConfig(text, { env: {}, file: null })),
          failureOf(() => parseScenario(text, 'scenario.yaml')),
          failureOf(() => loadEntities(file)),
        ])
        for (const message of told) {
          expect(message).toContain(`line ${place}: `)
          expect(message).not.toMatch(/S3C/)
        }
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('YAML without a mistake', () => {
  it.each([
    ['', null],
    ['{"a": [1, true, null]}', { a: [1, true, null] }],
    ['a: &x { b: 1 }\nc: *x', { a: { b: 1 }, c: { b: 1 } }],
    ['5: x', { 5: 'x' }],
  ])('%j is read', (text, value) => {
    expect(readYaml(text)).toEqual({ ok: true, value })
  })
})

async function failureOf(run: () => unknown): Promise<string> {
  try {
    await run()
  } catch (error) {
    return error instanceof Error ? `${error.message}\n${String(error.cause)}` : String(error)
  }
  return 'no failure'
}
