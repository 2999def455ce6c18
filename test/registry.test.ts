import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { customSink } from '../src/registry.ts'

const sink = (type: string): string => `export default { type: '${type}', summary: 's', options: { shape: {} }, open() {} }\n`

/** Packages as npm leaves them, above the folder of the configuration. */
const installed: Readonly<Record<string, string | object>> = {
  'esm-only/package.json': {
    name: 'esm-only',
    type: 'module',
    exports: { '.': { import: './main.js' }, './sinks/*': { import: './sinks/*.js' } },
  },
  'esm-only/main.js': sink('esm-main'),
  'esm-only/sinks/other.js': sink('esm-part'),
  '@contoso/sink/package.json': { name: '@contoso/sink', exports: { import: './main.mjs', require: './main.cjs' } },
  '@contoso/sink/main.mjs': sink('for-import'),
  '@contoso/sink/main.cjs': 'module.exports = 5',
  'old-style/package.json': { name: 'old-style', main: './main.cjs' },
  'old-style/main.cjs': "module.exports = { type: 'old', summary: 's', options: { shape: {} }, open() {} }\n",
  'lacks-dependency/package.json': { name: 'lacks-dependency', type: 'module', exports: './main.js' },
  'lacks-dependency/main.js': `import 'not-installed'\n${sink('never')}`,
  'lacks-main/package.json': { name: 'lacks-main', main: './missing.js' },
  'throws/package.json': { name: 'throws', type: 'module', exports: './main.js' },
  'throws/main.js': "throw new Error('no licence')\n",
  'no-sink/package.json': { name: 'no-sink', type: 'module', exports: './main.js' },
  'no-sink/main.js': 'export default 5\n',
}

let root = ''
let folder = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'foreshock-packages-'))
  folder = join(root, 'etc')
  await mkdir(folder)
  for (const [path, content] of Object.entries(installed)) {
    const file = join(root, 'node_modules', path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
})
afterAll(() => rm(root, { recursive: true }))

describe('a sink from an installed package', () => {
  it.each([
    ['esm-only', 'esm-main'],
    ['esm-only/sinks/other', 'esm-part'],
    ['@contoso/sink', 'for-import'],
    ['old-style', 'old'],
  ])('%s is found as import finds it', async (type, expected) => {
    expect(await customSink(type, folder)).toMatchObject({ definition: { type: expected } })
  })

  it.each(['webhok', '@contoso/absent', 'fs', 'node:fs'])('%s is not there, and the answer says what is', async (type) => {
    expect(await customSink(type, folder)).toEqual({
      problem: expect.stringMatching(new RegExp(`^expected one of .*stdout.* or the name of an installed package.*, got "${type}"$`)),
    })
  })

  it.each([
    ['lacks-dependency', /cannot be loaded: .*not-installed/],
    ['lacks-main', /cannot be loaded: .*missing\.js/],
    ['throws', /cannot be loaded: no licence/],
    ['esm-only/hidden', /cannot be loaded: .*hidden.* is not defined by "exports"/],
    ['no-sink', /expected the default export of .*main\.js to be a sink definition/],
  ])('%s is there, and what is wrong with it is told', async (type, problem) => {
    expect(await customSink(type, folder)).toEqual({ problem: expect.stringMatching(problem) })
  })
})
