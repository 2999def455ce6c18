import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { ForeshockError } from '../../sinks/error.ts'
import { attachDatabase, openDatabase } from '../../src/outbox/database.ts'
import { migrate, migrations } from '../../src/outbox/schema.ts'
import { createStore } from '../../src/outbox/store.ts'
import { captureLog, outgoing } from './outbox-events.ts'
import { openOutbox, temporaryFolder } from './outbox-fixture.ts'

const now = () => Date.UTC(2026, 0, 2, 3, 4, 5)
const stamp = '20260102T030405Z'
const newPath = (): string => join(temporaryFolder(), 'state.db')

function openAt(path: string) {
  const log = captureLog()
  const database = openDatabase(path, { now, log })
  database.close()
  return { database, log }
}

/** A sound state file with one event in it. */
function filled(path = newPath()): string {
  const database = openDatabase(path, { now, log: captureLog() })
  createStore(database, { now }).commit({ state: { lifecycle: { live: {} } }, events: [outgoing('e')] })
  database.close()
  return path
}

function codeOf(work: () => unknown): { code: string; message: string } {
  try {
    work()
  } catch (error) {
    if (error instanceof ForeshockError) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('expected it to throw')
}

describe('a state file that is fine', () => {
  it('is made with its directory, for this user alone', () => {
    const path = join(temporaryFolder(), 'deep', 'er', 'state.db')
    openAt(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
  })

  it('syncs every commit, through a write-ahead log', () => {
    const { database } = openOutbox()
    expect(database.db.get('PRAGMA journal_mode')).toEqual({ journal_mode: 'wal' })
    expect(database.db.get('PRAGMA synchronous')).toEqual({ synchronous: 2 })
    expect(database.db.get('PRAGMA foreign_keys')).toEqual({ foreign_keys: 1 })
  })

  it('gives back what it was told, after it was closed and opened again', () => {
    const path = filled()
    const { store, database } = openOutbox(path)
    expect(database.setAside).toBeUndefined()
    expect(store.readState('lifecycle')).toEqual({ live: {} })
    expect(store.readState('never')).toBeUndefined()
    expect(store.show('e')[0]?.event?.data).toEqual({ eventId: 'e' })
  })

  it('may start as an empty file that somebody touched', () => {
    const path = newPath()
    writeFileSync(path, '')
    expect(openAt(path).database.setAside).toBeUndefined()
    expect(statSync(path).size).toBeGreaterThan(0)
  })

  it('of version 1 is brought up to date with what is in it', () => {
    const path = newPath()
    const handle = new DatabaseSync(path)
    // As version 1 wrote it; never to be edited.
    handle.exec(`
      CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
        lane TEXT NOT NULL, priority INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL, UNIQUE (source, id)) STRICT;
      CREATE INDEX events_id ON events (id);
      CREATE TABLE deliveries (seq INTEGER NOT NULL REFERENCES events (seq), sink TEXT NOT NULL, lane TEXT NOT NULL,
        priority INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')), attempts INTEGER NOT NULL,
        next_attempt_at INTEGER, expires_at INTEGER NOT NULL, last_code TEXT, last_detail TEXT, settled_at INTEGER,
        PRIMARY KEY (seq, sink)) STRICT, WITHOUT ROWID;
      CREATE INDEX deliveries_heads ON deliveries (sink, priority DESC, seq, next_attempt_at) WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
      CREATE INDEX deliveries_schedule ON deliveries (sink, next_attempt_at) WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
      CREATE INDEX deliveries_lanes ON deliveries (sink, lane, seq) WHERE state = 'pending';
      CREATE INDEX deliveries_expiry ON deliveries (expires_at) WHERE state = 'pending';
      CREATE INDEX deliveries_settled ON deliveries (state, settled_at) WHERE settled_at IS NOT NULL;
      CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL CHECK (json_valid(value))) STRICT, WITHOUT ROWID;
      CREATE TABLE sinks (name TEXT PRIMARY KEY, halted_at INTEGER, halted_reason TEXT, held_until INTEGER) STRICT, WITHOUT ROWID;
      INSERT INTO events VALUES (7, '/s', 'old', 't', 'lane', 0, '{}', 1);
      INSERT INTO deliveries VALUES (7, 'a', 'lane', 0, 'pending', 3, 5, 99999999999999, 'http_503', 'down', NULL);
      INSERT INTO state VALUES ('lifecycle', '{"epoch":4}');
      INSERT INTO sinks VALUES ('b', 1, 'http_410: gone', NULL);
      PRAGMA application_id = 1179603525; PRAGMA user_version = 1;`)
    handle.close()
    const { store, database } = openOutbox(path)
    expect(database.setAside).toBeUndefined()
    expect(database.db.get('PRAGMA user_version')).toEqual({ user_version: migrations.length })
    expect(store.readState('lifecycle')).toEqual({ epoch: 4 })
    expect(store.due('a', now(), 10)).toMatchObject([{ seq: 7, lane: 'lane', attempts: 3, expiresAt: 99_999_999_999_999 }])
    expect(store.summarize()).toMatchObject([
      { name: 'a', pending: 1 },
      { name: 'b', haltedReason: 'http_410: gone' },
    ])
  })

  it('keeps the version whose migration fails half-way', () => {
    const handle = new DatabaseSync(newPath())
    migrate(handle, 0)
    const broken = [...migrations, 'CREATE TABLE more (x); CREATE TABLE events (x)']
    expect(() => migrate(handle, migrations.length, broken)).toThrow('already exists')
    expect(handle.prepare('PRAGMA user_version').get()).toEqual({ user_version: migrations.length })
    expect(handle.prepare(`SELECT name FROM sqlite_schema WHERE name = 'more'`).get()).toBeUndefined()
    handle.close()
  })
})

describe('a file that is no usable state file is set aside, and a fresh one is made', () => {
  const cases: { what: string; kind: string; spoil: (path: string) => void; reason: RegExp }[] = [
    { what: 'text', kind: 'damaged', spoil: (path) => writeFileSync(path, 'state: none\n'.repeat(500)), reason: /not a database/ },
    {
      what: 'a state file with overwritten pages',
      kind: 'damaged',
      spoil: (path) => {
        const bytes = readFileSync(filled(path))
        bytes.fill(0xaa, 4096)
        writeFileSync(path, bytes)
      },
      reason: /expected a sound/,
    },
    {
      what: 'a state file that was cut off',
      kind: 'damaged',
      spoil: (path) => truncateSync(filled(path), 8192),
      reason: /expected a sound/,
    },
    {
      what: 'remembered state that is no JSON any more',
      kind: 'damaged',
      spoil: (path) => {
        const bytes = readFileSync(filled(path))
        bytes.write('#', bytes.indexOf('{"live":{}}'))
        writeFileSync(path, bytes)
      },
      reason: /CHECK constraint failed in state/,
    },
    {
      what: 'a state file that misses a table',
      kind: 'damaged',
      spoil: (path) => alter(filled(path), 'DROP TABLE state'),
      reason: /without state\.key, state\.value/,
    },
    {
      what: 'the database of another program',
      kind: 'foreign',
      spoil: (path) => alter(path, 'CREATE TABLE bookmarks (url TEXT); PRAGMA application_id = 42'),
      reason: /expected the application id 1179603525, got 42/,
    },
    {
      what: 'a database of nobody in particular',
      kind: 'foreign',
      spoil: (path) => alter(path, 'CREATE TABLE events (x)'),
      reason: /got 0/,
    },
    {
      what: 'a state file of a newer version',
      kind: 'newer',
      spoil: (path) => alter(filled(path), 'PRAGMA user_version = 99'),
      reason: /expected schema version \d+ or below, got 99/,
    },
  ]

  it.each(cases)('$what: $kind', ({ kind, spoil, reason }) => {
    const path = newPath()
    spoil(path)
    const before = readFileSync(path)
    const { database, log } = openAt(path)
    expect(database.setAside).toMatchObject({ kind, path: `${path}.${kind}-${stamp}` })
    expect(database.setAside?.reason).toMatch(reason)
    expect(log.lines).toMatchObject([{ level: 'error', fields: { path, setAside: `${path}.${kind}-${stamp}` } }])
    expect(readFileSync(`${path}.${kind}-${stamp}`)).toEqual(before)
    expect(openOutbox(path).store.summarize()).toEqual([])
  })

  it('takes the write-ahead log along, and never a name that is taken', () => {
    const path = newPath()
    writeFileSync(path, 'first')
    openAt(path)
    writeFileSync(path, 'second')
    writeFileSync(`${path}-wal`, 'log of the second')
    expect(openAt(path).database.setAside?.path).toBe(`${path}.damaged-${stamp}-2`)
    expect(readFileSync(`${path}.damaged-${stamp}`, 'utf8')).toBe('first')
    expect(readFileSync(`${path}.damaged-${stamp}-2`, 'utf8')).toBe('second')
    expect(readFileSync(`${path}.damaged-${stamp}-2-wal`, 'utf8')).toBe('log of the second')
  })

  it('also where only the log is left', () => {
    const path = newPath()
    writeFileSync(`${path}-wal`, 'the rest')
    expect(openAt(path).database.setAside).toMatchObject({ kind: 'damaged', path: `${path}.damaged-${stamp}` })
  })

  it('when its damage shows only while running: told once, nothing read any more, a fresh file at the next start', () => {
    const path = filled()
    const told: ForeshockError[] = []
    const log = captureLog()
    const database = openDatabase(path, { now, log, onDamage: (error) => told.push(error) })
    const store = createStore(database, { now })
    // Beneath the open connection, as a failing disk would do it.
    writeFileSync(path, Buffer.alloc(statSync(path).size, 0xaa), { flag: 'r+' })
    database.db.all('PRAGMA shrink_memory')
    expect(codeOf(() => store.summarize())).toMatchObject({ code: 'state_unusable' })
    expect(codeOf(() => store.readState('lifecycle')).message).toMatch(/got damage while running: start foreshock again/)
    expect(codeOf(() => store.commit({ events: [outgoing('f')] })).code).toBe('state_unusable')
    expect(told).toHaveLength(1)
    database.close()
    expect(existsSync(path)).toBe(false)
    expect(readdirSync(dirname(path))).toContain(`state.db.damaged-${stamp}`)
    expect(openAt(path).database.setAside).toBeUndefined()
  })
})

describe('what no renaming can mend is said with its cure', () => {
  it('a directory in place of the file', () => {
    const path = newPath()
    mkdirSync(path)
    expect(codeOf(() => openAt(path))).toMatchObject({
      code: 'state_unusable',
      message: expect.stringMatching(/got the directory .* add a file name/),
    })
  })

  it('a file in place of the directory', () => {
    const path = newPath()
    writeFileSync(path, '')
    expect(codeOf(() => openAt(join(path, 'state.db')))).toMatchObject({
      code: 'state_unusable',
      message: expect.stringMatching(/is a directory/),
    })
  })

  it('a place where nobody may write', () => {
    expect(codeOf(() => openAt('/sys/foreshock/state.db')).code).toBe('state_unusable')
    // Node's own recursive mkdir never returns there.
    expect(codeOf(() => openAt('/proc/foreshock/state.db')).code).toBe('state_unusable')
  })

  it('a full disk', () => {
    const { store, database } = openOutbox()
    const pages = Number(database.db.get('PRAGMA page_count')?.['page_count'])
    database.db.get(`PRAGMA max_page_count = ${pages}`)
    const filling = () => store.commit({ state: { big: 'x'.repeat(100_000) } })
    expect(codeOf(filling)).toMatchObject({ code: 'state_unusable', message: expect.stringMatching(/free some space/) })
    database.db.get('PRAGMA max_page_count = 1000000')
    filling()
    expect(store.readState('big')).toHaveLength(100_000)
  })
})

describe('a command beside the forwarder', () => {
  it('sees what the forwarder commits, and the other way round', () => {
    const { path, store } = openOutbox()
    const beside = attachDatabase(path)
    const command = createStore(beside, { now })
    const before = store.revision()
    store.commit({ events: [outgoing('e')] })
    expect(store.revision()).toBe(before)
    expect(command.list()).toMatchObject([{ id: 'e', sink: 'a', state: 'pending' }])
    expect(command.drop({ id: 'e' })).toBe(1)
    expect(store.revision()).not.toBe(before)
    expect(store.list()).toEqual([])
    beside.close()
  })

  it('makes no file, moves none and changes none', () => {
    const path = newPath()
    expect(codeOf(() => attachDatabase(path))).toMatchObject({ code: 'state_unusable', message: expect.stringMatching(/got nothing at/) })
    writeFileSync(path, 'text '.repeat(1000))
    expect(codeOf(() => attachDatabase(path)).message).toMatch(/is damaged/)
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })
})

function alter(path: string, sql: string): void {
  const handle = new DatabaseSync(path)
  handle.exec(sql)
  handle.close()
}
