import { integer, optionalText, text, type Connection } from './connection.ts'

/** What a command on this machine asks of the forwarder that owns the state file. Times are milliseconds since the epoch. */
export interface Command {
  readonly command: 'approve' | 'hold' | 'release'
  readonly eventId: string
  readonly digest: string | null
  readonly requestedBy: string
  readonly reason: string | null
  readonly expiresAt: number
}

export interface WaitingCommand extends Command {
  readonly seq: number
}

/** Gives the number by which the answer is found. */
export function putCommand(db: Connection, command: Command, now: number): number {
  const row = db.get(
    `INSERT INTO commands (command, event_id, digest, requested_by, reason, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
    command.command,
    command.eventId,
    command.digest,
    command.requestedBy,
    command.reason,
    now,
    command.expiresAt,
  )
  return row === undefined ? 0 : integer(row, 'seq')
}

/** Oldest first. One that nobody waits for any more is not carried out. */
export function waitingCommands(db: Connection, now: number): WaitingCommand[] {
  return db.all('SELECT * FROM commands WHERE answer IS NULL AND expires_at > ? ORDER BY seq', now).map((row) => ({
    seq: integer(row, 'seq'),
    command: kind(text(row, 'command')),
    eventId: text(row, 'event_id'),
    digest: optionalText(row, 'digest'),
    requestedBy: text(row, 'requested_by'),
    reason: optionalText(row, 'reason'),
    expiresAt: integer(row, 'expires_at'),
  }))
}

/** `answer` is JSON. */
export function answerCommand(db: Connection, seq: number, answer: string): void {
  db.run('UPDATE commands SET answer = ? WHERE seq = ?', answer, seq)
}

/** The JSON of the answer; null while there is none. */
export function commandAnswer(db: Connection, seq: number): string | null {
  const row = db.get('SELECT answer FROM commands WHERE seq = ?', seq)
  return row === undefined ? null : optionalText(row, 'answer')
}

/** Only we write this column, and a hold is what does no harm. */
const kind = (command: string): Command['command'] => (command === 'approve' || command === 'release' ? command : 'hold')
