import 'node:process'
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, onTestFinished } from 'vitest'

const watched = new Set(['TCPSocketWrap', 'TCPServerWrap', 'PipeWrap', 'ProcessWrap'])
const open = (): number => process.getActiveResourcesInfo().filter((resource) => watched.has(resource)).length
const before = open()

/**
 * Every test gives back its sockets, servers and child processes; closing takes a turn or two of the event loop. What a test registers with
 * `onTestFinished` runs in reverse order, so this, registered first, looks last.
 */
beforeEach(() => {
  onTestFinished(async () => {
    for (let waited = 0; open() > before && waited < 2_000; waited += 20) await sleep(20)
    assert.ok(open() <= before, `still open: ${process.getActiveResourcesInfo().join(', ')}`)
  })
})
