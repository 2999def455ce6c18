import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../src/admin/metrics.ts'
import { configJsonSchema } from '../src/config/json-schema.ts'
import { emptyState } from '../src/lifecycle/remembered.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string) => readFile(join(root, file), 'utf8')

/** Dotted keys of the objects in a JSON Schema; what is inside a list or a choice has a page of its own. */
function keysOf(schema: unknown, path = ''): string[] {
  const properties: unknown = typeof schema === 'object' && schema !== null ? Reflect.get(schema, 'properties') : undefined
  if (typeof properties !== 'object' || properties === null) return path === '' ? [] : [path]
  return Object.entries(properties).flatMap(([key, part]) => keysOf(part, path === '' ? key : `${path}.${key}`))
}

describe('the documentation', () => {
  it('names every key of the configuration', async () => {
    const pages = (await Promise.all(['docs/configuration.md', 'docs/approvals.md'].map(read))).join('\n')
    const missing = keysOf(await configJsonSchema()).filter(
      (key) => !pages.includes(`\`${key}\``) && !pages.includes(key.split('.').at(-1) ?? key),
    )
    expect(missing).toEqual([])
  })

  it('names every metric, and none that is not there', async () => {
    const page = await read('docs/configuration.md')
    const source = { remembered: () => emptyState, sinks: () => [], now: () => 0 }
    const metrics = (await createMetrics('1', source).registry.getMetricsAsJSON()).map(({ name }) => name)
    const named = new Set(page.match(/foreshock_[a-z_]+/g))
    expect([...named].toSorted()).toEqual(metrics.toSorted())
  })

  it('links only to files that are there', async () => {
    const pages = [
      'README.md',
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'bench/README.md',
      'sinks/README.md',
      ...(await readdir(join(root, 'docs'))).map((file) => `docs/${file}`),
    ]
    const broken: string[] = []
    for (const page of pages) {
      for (const [, link = ''] of (await read(page)).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
        if (/^[a-z]+:/.test(link)) continue
        await read(join(page, '..', link)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EISDIR') broken.push(`${page}: ${link}`)
        })
      }
    }
    expect(broken).toEqual([])
  })
})
