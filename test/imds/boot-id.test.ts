import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readBootId } from '../../src/imds/boot-id.ts'

const folder = await mkdtemp(join(tmpdir(), 'foreshock-boot-'))
afterAll(() => rm(folder, { recursive: true }))

test.runIf(process.platform === 'linux')('On Linux the boot id is that of the kernel, the same at each call', async () => {
  const kernel = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  expect(await readBootId()).toBe(kernel)
  expect(await readBootId()).toBe(kernel)
})

test('Where there is none, or something else in its place, the boot id is null', async () => {
  const path = join(folder, 'boot_id')
  expect(await readBootId(path)).toBeNull()
  expect(await readBootId(join(path, 'below'))).toBeNull()
  await writeFile(path, 'no guid\n')
  expect(await readBootId(path)).toBeNull()
  await writeFile(path, '1F0AD6D1-7C51-4E4B-9D1F-0B8B3C4E5A6D\n')
  expect(await readBootId(path)).toBe('1F0AD6D1-7C51-4E4B-9D1F-0B8B3C4E5A6D')
})
