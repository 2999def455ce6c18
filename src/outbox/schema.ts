import { DatabaseSync } from 'node:sqlite'

/** "FORE" in the header of the file says whose it is. Source: https://www.sqlite.org/fileformat2.html#application_id */
export const applicationId = 0x464f5245

/**
 * Step n takes a file from version n to n + 1. A step that was released is never edited: the next change is the next step.
 *
 * Invariant of `deliveries`, on which dispatching in O(log n) rests: of the pending rows of one (sink, lane) exactly the first by `seq` has
 * a `next_attempt_at`; the row is called armed, the head. All times are milliseconds since the epoch.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE events (
     seq        INTEGER PRIMARY KEY AUTOINCREMENT,
     source     TEXT NOT NULL,
     id         TEXT NOT NULL,
     type       TEXT NOT NULL,
     lane       TEXT NOT NULL,
     priority   INTEGER NOT NULL,
     body       TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     UNIQUE (source, id)
   ) STRICT;
   CREATE INDEX events_id ON events (id);

   CREATE TABLE deliveries (
     seq             INTEGER NOT NULL REFERENCES events (seq),
     sink            TEXT NOT NULL,
     lane            TEXT NOT NULL,
     priority        INTEGER NOT NULL,
     state           TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
     attempts        INTEGER NOT NULL,
     next_attempt_at INTEGER,
     expires_at      INTEGER NOT NULL,
     last_code       TEXT,
     last_detail     TEXT,
     settled_at      INTEGER,
     PRIMARY KEY (seq, sink)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX deliveries_heads ON deliveries (sink, priority DESC, seq, next_attempt_at)
     WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
   CREATE INDEX deliveries_schedule ON deliveries (sink, next_attempt_at)
     WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
   CREATE INDEX deliveries_lanes ON deliveries (sink, lane, seq) WHERE state = 'pending';
   CREATE INDEX deliveries_expiry ON deliveries (expires_at) WHERE state = 'pending';
   CREATE INDEX deliveries_settled ON deliveries (state, settled_at) WHERE settled_at IS NOT NULL;

   CREATE TABLE state (
     key   TEXT PRIMARY KEY,
     value TEXT NOT NULL CHECK (json_valid(value))
   ) STRICT, WITHOUT ROWID;

   CREATE TABLE sinks (
     name          TEXT PRIMARY KEY,
     halted_at     INTEGER,
     halted_reason TEXT,
     held_until    INTEGER
   ) STRICT, WITHOUT ROWID;`,

  // `approvals`: recorded before the POST, final after it, with the event that told it; a row is kept past the life of its request, so that the
  // same request is known again. `commands`: what a command on this machine asks of the forwarder that owns the file, and its answer.
  `CREATE TABLE approvals (
     request    TEXT NOT NULL,
     event_key  TEXT NOT NULL,
     delivery   TEXT,
     state      TEXT NOT NULL CHECK (state IN ('recorded', 'final')),
     code       TEXT,
     attempts   INTEGER NOT NULL,
     posted_at  INTEGER,
     settled_at INTEGER,
     kept_until INTEGER NOT NULL,
     event      TEXT,
     PRIMARY KEY (request, event_key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX approvals_posted ON approvals (posted_at) WHERE posted_at IS NOT NULL;
   CREATE INDEX approvals_kept ON approvals (kept_until);
   CREATE INDEX approvals_events ON approvals (event_key, settled_at);

   CREATE TABLE holds (
     event_key    TEXT PRIMARY KEY,
     requested_by TEXT,
     held_at      INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;

   CREATE TABLE commands (
     seq          INTEGER PRIMARY KEY AUTOINCREMENT,
     command      TEXT NOT NULL,
     event_id     TEXT NOT NULL,
     digest       TEXT,
     requested_by TEXT NOT NULL,
     reason       TEXT,
     created_at   INTEGER NOT NULL,
     expires_at   INTEGER NOT NULL,
     answer       TEXT CHECK (json_valid(answer))
   ) STRICT;`,
]

/** Brings a file of `version` (0: an empty one) up to date, each step in a transaction of its own. */
export function migrate(handle: DatabaseSync, version: number, steps: readonly string[] = migrations): void {
  for (const [index, sql] of steps.entries()) {
    if (index < version) continue
    handle.exec('BEGIN IMMEDIATE')
    try {
      // Both pragmas write the header page, so they are part of the transaction.
      handle.exec(`${sql}; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${index + 1}`)
      handle.exec('COMMIT')
    } catch (error) {
      if (handle.isTransaction) handle.exec('ROLLBACK')
      throw error
    }
  }
}

/** `table.column` of everything that is in the file. */
export function columnsOf(handle: DatabaseSync): Set<string> {
  const rows = handle
    .prepare(
      `SELECT t.name || '.' || c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`,
    )
    .all()
  return new Set(rows.map((row) => String(row['column'])))
}

/** The same, of what a file of `version` must have. */
export function expectedColumns(version: number): Set<string> {
  const memory = new DatabaseSync(':memory:')
  try {
    migrate(memory, 0, migrations.slice(0, version))
    return columnsOf(memory)
  } finally {
    memory.close()
  }
}
