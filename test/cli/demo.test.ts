import { expect, it } from 'vitest'
import { eventually, run, start } from '../support/program.ts'

it('tells the whole story in less than 30 s, ends with a table of what each sink got, and exits with 0', { timeout: 60_000 }, async () => {
  const begun = performance.now()
  const { status, stdout, stderr } = await run(['demo'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(performance.now() - begun).toBeLessThan(30_000)
  for (const line of [
    /s {2}Freeze of web_0 scheduled by Platform/,
    /s {2}Freeze of web_0 completed \(evidence: rule started/,
    /s {2}Reboot of web_0 scheduled by User/,
    /operator +reads it from the topic, approves by a signed message/,
    /s {2}approval relayed \(ok\), asked for by alice@example\.com/,
    /operator +gets the reply: approved/,
    /power +the machine goes down: the forwarder is killed/,
    /s {2}Reboot of web_0 completed .*the machine has booted since\), after .* s during which nobody looked/,
    /^SINK +EVENTS .*COPIES$/m,
  ]) {
    expect(stdout).toMatch(line)
  }
  const counts = [...stdout.matchAll(/^(?:stdout|webhook|event-hubs|service-bus) +(\d+) /gm)].map(([, count]) => Number(count))
  expect(counts).toHaveLength(4)
  expect(new Set(counts).size).toBe(1)
  expect(stdout.endsWith('Every sink got every event.\n')).toBe(true)
})

it('ends, and leaves no process behind, when whoever reads it goes away', { timeout: 30_000 }, async () => {
  const demo = start(['demo'])
  await eventually(() => expect(demo.stdout.join()).toMatch(/forwarder started/))
  demo.closeStdout()
  // Its forwarder holds its stderr: that this ends means that both are gone.
  expect(await demo.ended).toMatchObject({ signal: null })
  expect(demo.stderr).toEqual([])
})
