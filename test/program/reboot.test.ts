import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { documentOf, entryOf, eventsIn, eventually, openStage, startImds, told, type Published } from '../support/program.ts'

const withBootId = (id: string) => ({ env: { FORESHOCK_BOOT_ID: id } })

/** A kill may come between writing and noting it: then the same is written once more. */
const distinct = (events: readonly Published[]): Published[] => [...new Map(events.map((event) => [event.id, event])).values()]

it('tells, back from the reboot that was scheduled, that it completed and how long nobody looked', async () => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(7, entryOf()))
  const before = forward(withBootId('boot-1'))
  await eventually(() => expect(told(distinct(eventsIn(file)))).toEqual(['scheduled']))
  before.send('SIGKILL')
  await before.ended
  const downFrom = Date.now()
  imds.setDocument(documentOf(9))
  await sleep(1_000)

  forward(withBootId('boot-2'))
  await eventually(() => expect(told(distinct(eventsIn(file)))).toEqual(['scheduled', 'completed']))
  const downSeconds = (Date.now() - downFrom) / 1000
  const end = eventsIn(file).at(-1)
  expect(end).toMatchObject({
    id: 'c7061bac-afdc-4513-b24b-aa5f13a16123:ended',
    data: {
      outcome: 'completed',
      evidence: { rule: 'B', d: 2, bootChanged: true },
      scheduledAt: eventsIn(file).find(({ type }) => type.endsWith('.scheduled.v1'))?.time,
      startedAt: null,
    },
  })
  const gap = Number(end?.data['gapSeconds'])
  expect(gap).toBeGreaterThan(0.9)
  // From the last poll before the kill, at most an interval and a busy moment earlier, to the first one after.
  expect(gap).toBeLessThan(downSeconds + 2)
  expect(end?.data['evidence']).toMatchObject({ gapSeconds: gap })
})

it('concludes nothing when the boot says completed and the incarnation says cancelled', async () => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(7, entryOf()))
  const before = forward(withBootId('boot-1'))
  await eventually(() => expect(told(distinct(eventsIn(file)))).toEqual(['scheduled']))
  before.send('SIGKILL')
  await before.ended
  imds.setDocument(documentOf(8))
  forward(withBootId('boot-2'))
  await eventually(() => expect(told(distinct(eventsIn(file)))).toEqual(['scheduled', 'vanished']))
  expect(eventsIn(file).at(-1)?.data).toMatchObject({ evidence: { rule: 'D', d: 1, bootChanged: true, inconclusive: 'contradiction' } })
})

it('tells an event that was called off while nobody looked as cancelled', async () => {
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(7, entryOf()))
  const before = forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  before.send('SIGTERM')
  await before.ended
  imds.setDocument(documentOf(8))
  forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'cancelled']))
  expect(eventsIn(file).at(-1)?.data).toMatchObject({ evidence: { rule: 'A', d: 1, bootChanged: false } })
})

it('forgets silently what another machine saw: the disk was cloned', async () => {
  const { imds, file, configure, forward } = await openStage()
  imds.setDocument(documentOf(7, entryOf()))
  const before = forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  before.send('SIGTERM')
  await before.ended

  const clone = await startImds('clone', 'web_1')
  const mine = entryOf({ EventId: 'A3F1', EventType: 'Freeze', Resources: ['web_1'] })
  clone.setDocument(documentOf(3, mine))
  configure({ imds: { endpoint: clone.url, pollIntervalMs: 100 } })
  forward()
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'scheduled']))
  clone.setDocument(documentOf(4))
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled', 'scheduled', 'cancelled']))
  expect(eventsIn(file).slice(-1)).toMatchObject([{ id: 'a3f1:ended' }])
})
