import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { openClient } from './open-client.ts'

const sockets = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length

/** A port whose queue of connections is full and served by nobody: Linux drops every further SYN, as a firewall would. */
async function blackHole(): Promise<AsyncDisposable & { readonly origin: string }> {
  const program = `
    const server = require('node:net').createServer().listen(0, '127.0.0.1', 1, () => {
      require('node:fs').writeSync(1, String(server.address().port))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(child.stdout, 'data')
  // What is made of these does not matter: two are queued, the others wait.
  const fillers = Array.from({ length: 4 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}))
  const [first] = fillers
  if (first !== undefined) await once(first, 'connect')
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const filler of fillers) filler.destroy()
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

test.runIf(process.platform === 'linux')(
  'A connection that nobody answers ends in time, by the limit of the connection or of the whole',
  async () => {
    await using hole = await blackHole()
    await using impatient = openClient(hole.origin, { timeouts: { connectMs: 200 } })
    expect(await impatient.getEvents()).toMatchObject({ reason: 'timeout', detail: expect.stringMatching(/firewall/) })
    await using client = openClient(hole.origin)
    expect(await client.getEvents({ timeoutMs: 200 })).toMatchObject({ reason: 'timeout', detail: expect.stringMatching(/within 200 ms/) })
  },
)

test.runIf(process.platform === 'linux')('Closing, and an abort, do not wait for a connection that is being made', async () => {
  await using hole = await blackHole()
  const others = sockets()
  await using client = openClient(hole.origin, { timeouts: { connectMs: 600_000 } })
  const leave = new AbortController()
  const aborted = Promise.allSettled([client.getEvents({ signal: leave.signal, timeoutMs: 600_000 })])
  const hanging = client.getEvents({ timeoutMs: 600_000 })
  leave.abort(new Error('enough'))
  expect(await aborted).toMatchObject([{ status: 'rejected', reason: { message: 'enough' } }])
  await expect.poll(sockets).toBe(others + 2)
  await client.close()
  expect(await hanging).toMatchObject({ kind: 'failure', reason: 'closed' })
  await expect.poll(sockets).toBe(others)
})
