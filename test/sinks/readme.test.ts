import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commonSinkOptions } from '../../src/config/schema.ts'
import { builtinSink, builtinSinkTypes } from '../../src/registry.ts'
import { optionsTable } from '../support/options-table.ts'

const path = join(import.meta.dirname, '../../sinks/README.md')

describe('the page of the sinks', () => {
  it('shows the options as the schemas have them, and the minimal sink as it is tested (`vitest run THIS_FILE --update` writes them)', async () => {
    const generated = new Map([
      ['options', optionsTable(commonSinkOptions)],
      ['minimal-sink', '```js\n' + (await readFile(join(import.meta.dirname, '../fixtures/custom-sink/minimal-sink.mjs'), 'utf8')) + '```'],
    ])
    for (const type of builtinSinkTypes) generated.set(`options of ${type}`, optionsTable((await builtinSink(type)).options))

    const page = await readFile(path, 'utf8')
    const filled = page.replaceAll(
      /(<!-- generated: ([^>]+?) -->\n).*?(<!-- end -->)/gs,
      (_, begin: string, name: string, end: string) => `${begin}\n${generated.get(name) ?? `nothing is called ${name}`}\n\n${end}`,
    )
    await expect(filled).toMatchFileSnapshot(path)
  })

  it.each(builtinSinkTypes)('has a section that is named %s, with its summary and its options', async (type) => {
    const page = await readFile(path, 'utf8')
    const { summary } = await builtinSink(type)
    expect(page).toContain(`\n### ${type}\n\n${summary}`)
    expect(page).toContain(`<!-- generated: options of ${type} -->`)
  })
})
