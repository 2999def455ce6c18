import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemd } from '../../src/cli/systemd.ts'

describe('under systemd', () => {
  let folder = ''
  const path = process.env['PATH']
  const told = () => readFile(join(folder, 'told'), 'utf8')

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'foreshock-systemd-'))
    await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$@" >> ${join(folder, 'told')}\n`)
    await chmod(join(folder, 'systemd-notify'), 0o755)
    process.env['PATH'] = `${folder}${delimiter}${path}`
  })
  afterAll(async () => {
    process.env['PATH'] = path
    await rm(folder, { recursive: true })
  })

  it('readiness, status, watchdog and the end are told', async () => {
    const warnings: string[] = []
    const notify = systemd(
      { NOTIFY_SOCKET: '/run/x', WATCHDOG_USEC: '3000000' },
      () => 'all\nis well',
      (message) => warnings.push(message),
    )
    notify.ready('forwarding to 2 sinks')
    await vi.waitFor(async () => expect(await told()).toContain(`--pid=${process.pid} --ready STATUS=forwarding to 2 sinks\n`), 10_000)
    await vi.waitFor(async () => expect(await told()).toContain('WATCHDOG=1 STATUS=all is well\n'), 10_000)
    notify.stopping()
    await vi.waitFor(async () => expect(await told()).toContain('STOPPING=1\n'), 10_000)
    notify.close()
    expect(warnings).toEqual([])
  })

  it('and nowhere else', async () => {
    const before = await told()
    const notify = systemd(
      {},
      () => '',
      () => {},
    )
    notify.ready('x')
    notify.stopping()
    notify.close()
    expect(await told()).toBe(before)
  })

  it('without systemd-notify says once what to do', async () => {
    process.env['PATH'] = '/nowhere'
    const warnings: string[] = []
    const notify = systemd(
      { NOTIFY_SOCKET: '/run/x' },
      () => '',
      (message) => warnings.push(message),
    )
    notify.ready('x')
    notify.stopping()
    await vi.waitFor(() => expect(warnings).toHaveLength(1))
    notify.close()
    expect(warnings[0]).toMatch(/install systemd-notify/)
  })
})
