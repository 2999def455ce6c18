import { glob, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')

it('the image has everything at hand that the sources import when it bundles them', async () => {
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8')
  const stage = dockerfile.slice(dockerfile.indexOf('AS build'), dockerfile.indexOf('RUN npm ci'))
  const copied = [...stage.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, sources = '']) => sources.split(' '))
  const missing: string[] = []
  for await (const file of glob('{src,sinks}/**/*.ts', { cwd: root })) {
    const text = await readFile(join(root, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/(?:from|import\() ?'(\.{1,2}\/[^']+)'/g)) {
      const target = relative(root, resolve(root, dirname(file), specifier))
      if (!copied.some((source) => target === source || target.startsWith(`${source}/`))) missing.push(`${file}: ${target}`)
    }
  }
  expect(missing).toEqual([])
})
