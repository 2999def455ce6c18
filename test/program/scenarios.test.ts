import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { readyScenarios } from '../../src/simulator/imds/scenario-file.ts'
import { eventsIn, eventually, start, temporaryFolder, told, type Published } from '../support/program.ts'

const whole = ['scheduled', 'started', 'completed']

interface Story {
  readonly speed: number
  /** Per event, in order. */
  readonly tells: readonly (readonly string[])[]
}

/**
 * What each ready scenario tells, the longest to play first. No phase that has to be seen is shorter than a second, ten polls, and none ends
 * before a forwarder has started on a busy machine.
 */
const stories: Record<string, Story> = {
  reschedule: { speed: 150, tells: [['scheduled', 'scheduled', 'scheduled', 'started', 'completed']] },
  'incarnation-reset': { speed: 300, tells: [whole, whole] },
  'host-maintenance': { speed: 400, tells: [whole, whole] },
  'scale-in': { speed: 80, tells: [whole, whole, whole] },
  'spot-preempt': { speed: 25, tells: [whole] },
  'live-migration': { speed: 250, tells: [whole] },
  'user-reboot': { speed: 250, tells: [whole] },
  redeploy: { speed: 250, tells: [whole] },
  'hardware-failure': { speed: 250, tells: [['started', 'completed']] },
  cancelled: { speed: 150, tells: [['scheduled', 'cancelled']] },
}

/** Whether `flaky` is seen as started depends on which polls get through. */
const flaky = { speed: 150, tells: /^scheduled (started completed|vanished)$/ }

const ends = new Set(['completed', 'cancelled', 'vanished'])
const announced = z.object({ scenario: z.string(), vms: z.array(z.object({ vm: z.string(), url: z.string() })) })

/** Plays a ready scenario to its end, and gives what a forwarder on each of its machines told until nothing was live any more. */
async function play(scenario: string, speed: number): Promise<Published[][]> {
  const simulator = start(['simulate', 'imds', '--port', '0', '--json', '--scenario', scenario, '--speed', String(speed)])
  const { vms } = await eventually(() => announced.parse(JSON.parse(simulator.stdout[0] ?? '')))
  const machines = vms.map(({ vm, url }) => {
    const folder = temporaryFolder()
    const file = join(folder, `${vm}.jsonl`)
    const config = join(folder, 'config.json')
    const sinks = [{ name: 'log', type: 'file', path: file, filter: { types: ['scheduledevent.*'] } }]
    const imds = { endpoint: url, pollIntervalMs: 100 }
    writeFileSync(config, JSON.stringify({ imds, sinks, state: { path: join(folder, 'state.db') }, admin: { listen: false } }))
    return { file, forwarder: start(['run', '--config', config]) }
  })
  await eventually(() => expect(simulator.log().map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/at its end/)), 60_000)
  await eventually(() => {
    const unfinished = machines.flatMap(({ file }) => lives(eventsIn(file))).filter((life) => !ends.has(life.at(-1) ?? ''))
    expect({ scenario, unfinished }).toEqual({ scenario, unfinished: [] })
  })
  for (const { forwarder } of machines) forwarder.send('SIGTERM')
  for (const { forwarder } of machines) expect((await forwarder.ended).status).toBe(0)
  simulator.send('SIGTERM')
  expect((await simulator.ended).status).toBe(0)
  return machines.map(({ file }) => eventsIn(file))
}

const lives = (events: readonly Published[]): string[][] => [...Map.groupBy(events, ({ partitionkey }) => partitionkey).values()].map(told)

/** What every scenario told, by machine; a few are played at once, for each takes several processes. */
async function playAll(speeds: ReadonlyMap<string, number>): Promise<Map<string, Published[][]>> {
  const found = new Map<string, Published[][]>()
  const waiting = speeds.entries()
  const player = async (): Promise<void> => {
    for (const [name, speed] of waiting) found.set(name, await play(name, speed))
  }
  await Promise.all(Array.from({ length: 5 }, player))
  return found
}

it('tells every ready scenario as its story goes, under the same ids on every machine', { timeout: 120_000 }, async () => {
  const names = (await readyScenarios()).map(({ name }) => name)
  // The demo has a test of its own.
  expect([...Object.keys(stories), 'demo', 'flaky'].toSorted()).toEqual(names)
  const speeds = Object.entries({ flaky, ...stories }).map(([name, { speed }]) => [name, speed] as const)
  const found = await playAll(new Map(speeds))
  for (const [name, { tells }] of Object.entries(stories)) {
    const machines = found.get(name) ?? []
    expect({ name, told: machines.map(lives) }).toEqual({ name, told: machines.map(() => tells) })
    expect({ name, ids: new Set(machines.flat().map(({ id }) => id)).size }).toEqual({ name, ids: tells.flat().length })
  }
  expect(found.get('scale-in')).toHaveLength(3)
  expect(lives(found.get('flaky')?.flat() ?? []).map((life) => life.join(' '))).toEqual([expect.stringMatching(flaky.tells)])
})
