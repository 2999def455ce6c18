import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { documentOf, entryOf, eventsIn, eventually, openStage, told, type Stage } from '../support/program.ts'

const live = [entryOf(), entryOf({ EventId: 'A3F1', EventType: 'Freeze', EventStatus: 'Started', NotBefore: '' })]

/** Overwrites the middle of the file, as a bad disk would. */
function scribble(path: string): void {
  const file = openSync(path, 'r+')
  try {
    writeSync(file, Buffer.alloc(3 * 4096, 0xa5), 0, undefined, 4096)
  } finally {
    closeSync(file)
  }
}

function foreign(path: string): void {
  const database = new DatabaseSync(path)
  database.exec('CREATE TABLE bookmarks (url TEXT)')
  database.close()
}

function newer(path: string): void {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA user_version = 4711')
  database.close()
}

/** A state file with two events in it, as a forwarder that was stopped left it. */
async function openLivedIn(): Promise<Stage> {
  const stage = await openStage()
  stage.imds.setDocument(documentOf(2, ...live))
  const forwarder = stage.forward()
  await eventually(() => expect(told(eventsIn(stage.file))).toHaveLength(2))
  forwarder.send('SIGTERM')
  expect((await forwarder.ended).status).toBe(0)
  return stage
}

const idsOfEvents = (stage: Stage): string[] =>
  eventsIn(stage.file).flatMap(({ type, id }) => (type.includes('.scheduledevent.') ? [id] : []))

it.for([
  { what: 'with overwritten bytes', kind: 'damaged', spoil: scribble },
  { what: 'of a newer version', kind: 'newer', spoil: newer },
  {
    what: 'that is a text',
    kind: 'damaged',
    spoil: (path: string) => writeFileSync(path, 'Dear diary, today nothing was scheduled.\n'.repeat(200)),
  },
])('sets a state file $what aside, says so, goes on, and tells the live events again under the same ids', async ({ kind, spoil }) => {
  const stage = await openLivedIn()
  const before = idsOfEvents(stage)
  spoil(stage.state)
  const spoilt = readFileSync(stage.state)

  const forwarder = stage.forward()
  await eventually(() => expect(told(eventsIn(stage.file))).toHaveLength(4))
  expect(idsOfEvents(stage).slice(2)).toEqual(before)
  const [line, ...others] = forwarder.log().filter(({ level }) => level === 'error')
  expect(others).toEqual([])
  expect(line?.msg).toMatch(new RegExp(`^the state file was ${kind} and is set aside`))
  const aside = readdirSync(stage.folder).filter((name) => name.startsWith(`state.db.${kind}-`) && !/-(wal|shm)$/.test(name))
  expect(aside).toHaveLength(1)
  expect(line).toMatchObject({ setAside: `${stage.folder}/${aside[0] ?? ''}` })
  expect(readFileSync(`${stage.folder}/${aside[0] ?? ''}`).equals(spoilt)).toBe(true)

  stage.imds.setDocument(documentOf(3))
  await eventually(() => expect(told(eventsIn(stage.file)).slice(4).toSorted()).toEqual(['cancelled', 'completed']))
})

it('sets the SQLite file of another program aside unharmed, and begins a fresh one', async () => {
  const stage = await openStage()
  foreign(stage.state)
  stage.imds.setDocument(documentOf(2, ...live))
  const forwarder = stage.forward()
  await eventually(() => expect(told(eventsIn(stage.file))).toHaveLength(2))
  expect(forwarder.log()).toContainEqual(
    expect.objectContaining({ level: 'error', msg: expect.stringMatching(/was foreign and is set aside/) }),
  )
  const aside = readdirSync(stage.folder).find((name) => name.startsWith('state.db.foreign-')) ?? ''
  const database = new DatabaseSync(`${stage.folder}/${aside}`)
  expect(database.prepare('SELECT count(*) AS n FROM bookmarks').get()).toEqual({ n: 0 })
  database.close()
})

it('does not touch the files that were set aside before: each keeps its name', async () => {
  const stage = await openStage()
  for (let times = 1; times <= 2; times += 1) {
    writeFileSync(stage.state, `not a database ${times}\n`.repeat(100))
    expect((await stage.forward({ args: ['--once'] }).ended).status).toBe(0)
  }
  expect(readdirSync(stage.folder).filter((name) => name.startsWith('state.db.damaged-'))).toHaveLength(2)
})
