import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { reasonCodes } from '../../src/approvals/reason.ts'

it('the operator’s page explains every reason code, in the order of the gate', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/approvals.md'), 'utf8')
  const table = page.slice(page.indexOf('## Reason codes'), page.indexOf('## What happens when'))
  const explained = [...table.matchAll(/^\| `([a-z_]+)` +\|/gm)].map(([, code]) => code)
  expect(explained).toEqual([...reasonCodes])
})
