import 'node:process'
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach } from 'vitest'

const watched = new Set(['TCPSocketWrap', 'TCPServerWrap', 'PipeWrap', 'ProcessWrap'])
const open = (): number => process.getActiveResourcesInfo().filter((resource) => watched.has(resource)).length
const before = open()

/** Every test gives back its sockets, servers and child processes; closing takes a turn or two of the event loop. */
afterEach(async () => {
  for (let waited = 0; open() > before && waited < 2_000; waited += 20) await sleep(20)
  assert.ok(open() <= before, `still open: ${process.getActiveResourcesInfo().join(', ')}`)
})
