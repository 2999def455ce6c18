import { countPosted, findApprovals, lastApprovals, pruneApprovals, recordApproval, unfinishedApprovals } from './approvals.ts'
import { answerCommand, commandAnswer, putCommand, waitingCommands, type Command } from './commands.ts'
import { commit, type Commit } from './commit.ts'
import type { Database } from './database.ts'
import { drop, type DropFilter } from './drop.ts'
import { listHolds, releaseHold } from './holds.ts'
import { clampSchedule, due, nextDueAfter } from './due.ts'
import { listDeliveries, showEvents, summarize, wasDelivered, type ListFilter } from './overview.ts'
import { prune } from './prune.ts'
import { readState, writeState } from './remembered.ts'
import { replay, type ReplayFilter } from './replay.ts'
import { settle, type Settlement, type SinkVerdict } from './settle.ts'
import { haltSink, readSink } from './sink-state.ts'

export type Store = ReturnType<typeof createStore>

/**
 * The outbox and the remembered state: each method one statement or one transaction, durable when it returns, but for `settle` and
 * `recordApproval`, which a power failure may take back. Everything throws
 * `state_unusable` where the disk or the file fails, `state_locked` where another process writes for longer than two seconds.
 */
export function createStore({ db }: Pick<Database, 'db'>, { now }: { readonly now: () => number }) {
  let changesHere = 0
  const changing = <T>(result: T): T => {
    changesHere += 1
    return result
  }

  return {
    commit: (what: Commit) => commit(db, what, now()),
    readState: (key: string) => readState(db, key),
    writeState: (key: string, value: unknown) => writeState(db, key, value),

    due: (sink: string, at: number, limit: number, except?: readonly number[]) => due(db, sink, at, limit, except),
    nextDueAfter: (sink: string, at: number) => nextDueAfter(db, sink, at),
    settle: (sink: string, settlements: readonly Settlement[], verdict: SinkVerdict = {}) => settle(db, sink, settlements, verdict, now()),
    clampSchedule: (sink: string, longestMs: number) => clampSchedule(db, sink, now(), longestMs),
    readSink: (sink: string) => readSink(db, sink),

    summarize: () => summarize(db),
    list: (filter: ListFilter = {}) => listDeliveries(db, filter),
    show: (id: string) => showEvents(db, id),
    wasDelivered: (source: string, id: string, sink: string) => wasDelivered(db, source, id, sink),

    findApprovals: (request: string) => findApprovals(db, request),
    recordApproval: (request: string, eventKeys: readonly string[], delivery: string | null) =>
      recordApproval(db, request, eventKeys, delivery, now()),
    countPosted: (since: number) => countPosted(db, since, now()),
    unfinishedApprovals: (before: number) => unfinishedApprovals(db, before, now()),
    lastApprovals: (eventKeys: readonly string[]) => lastApprovals(db, eventKeys),
    pruneApprovals: () => pruneApprovals(db, now()),
    holds: () => listHolds(db),
    releaseHold: (eventKey: string) => releaseHold(db, eventKey),
    putCommand: (command: Command) => putCommand(db, command, now()),
    waitingCommands: () => waitingCommands(db, now()),
    answerCommand: (seq: number, answer: string) => answerCommand(db, seq, answer),
    commandAnswer: (seq: number) => commandAnswer(db, seq),

    replay: (filter: ReplayFilter) => changing(replay(db, filter, now())),
    drop: (filter: DropFilter) => changing(drop(db, filter, now())),
    halt: (sink: string, reason: string) => changing(haltSink(db, sink, reason, now())),
    prune: () => changing(prune(db, now())),

    /**
     * Differs from the last one when another process, or an operator's command here, may have changed what is due. Costs microseconds.
     * What `commit` and `settle` of this very store do is not in it: who calls them knows.
     */
    revision(): string {
      // Changes only with commits of other connections. Source: https://www.sqlite.org/pragma.html#pragma_data_version
      return `${Number(db.get('PRAGMA data_version')?.['data_version'])}:${changesHere}`
    },
  }
}
