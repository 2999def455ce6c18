import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import type { DeliveryOutcome, Sink } from '../../sinks/contract.ts'
import { openDatabase, type Database } from '../../src/outbox/database.ts'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from '../../src/outbox/dispatcher.ts'
import { createStore, type Store } from '../../src/outbox/store.ts'
import { captureLog, transient } from './outbox-events.ts'

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'foreshock-outbox-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A real file in a folder of its own; the clock is the real one plus `offsetMs`, which a test moves. */
export function openOutbox(path = join(temporaryFolder(), 'state.db')): {
  readonly path: string
  readonly log: ReturnType<typeof captureLog>
  readonly clock: { offsetMs: number; now: () => number }
  readonly database: Database
  readonly store: Store
} {
  const log = captureLog()
  const clock = { offsetMs: 0, now: () => Date.now() + clock.offsetMs }
  const database = openDatabase(path, { now: clock.now, log })
  onTestFinished(() => database.close())
  return { path, log, clock, database, store: createStore(database, clock) }
}

/** What a sink was asked, and the answer that the test gives when it likes. */
export interface Call {
  readonly id: string
  readonly lane: string
  readonly signal: AbortSignal
  answer(outcome: DeliveryOutcome): void
}

/**
 * A sink in the hands of the test: it answers by `automatic`, or where that gives nothing, when the test does. It gives up when its signal
 * aborts, unless it is `deaf`.
 */
export function puppetSink(
  automatic: (event: CloudEvent, count: number) => DeliveryOutcome | undefined = () => undefined,
  { deaf = false }: { deaf?: boolean } = {},
): {
  readonly deliver: Sink['deliver']
  readonly calls: Call[]
  /** Resolves once so many calls were made in all. */
  called(count: number): Promise<void>
} {
  const calls: Call[] = []
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  return {
    calls,
    deliver(event, { signal }) {
      const { promise, resolve } = Promise.withResolvers<DeliveryOutcome>()
      calls.push({ id: event.id, lane: event.partitionkey, signal, answer: resolve })
      const answer = automatic(event, calls.length)
      if (!deaf) signal.addEventListener('abort', () => resolve(transient))
      if (answer !== undefined) resolve(answer)
      for (const { count, resolve: tell } of waiting) if (calls.length >= count) tell()
      return promise
    },
    called(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (calls.length >= count) resolve()
      waiting.push({ count, resolve })
      return promise
    },
  }
}

/** A dispatcher that is closed at the end of the test, and a promise for its settlements. */
export function dispatch(
  outbox: Pick<ReturnType<typeof openOutbox>, 'store' | 'log' | 'clock'>,
  options: Pick<DispatcherOptions, 'sink'> & Partial<DispatcherOptions>,
): Dispatcher & { readonly settled: Settled[]; whenSettled(count: number): Promise<void> } {
  const settled: Settled[] = []
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  const dispatcher = createDispatcher({
    store: outbox.store,
    name: 'a',
    now: outbox.clock.now,
    random: () => 0,
    log: outbox.log,
    onSettled(id, outcome, { attempts }) {
      settled.push({ id, outcome, attempts })
      for (const { count, resolve } of waiting) if (settled.length >= count) resolve()
    },
    ...options,
  })
  onTestFinished(() => dispatcher.close())
  return {
    ...dispatcher,
    settled,
    whenSettled(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (settled.length >= count) resolve()
      waiting.push({ count, resolve })
      return promise
    },
  }
}

export interface Settled {
  readonly id: string
  readonly outcome: DeliveryOutcome
  readonly attempts: number
}

/** What is wrong with the armed rows: for each sink and lane exactly the first pending one must be. Empty where all is well. */
export function brokenLanes(database: Database): unknown[] {
  return database.db.all(`
    SELECT sink, lane, seq, next_attempt_at, first FROM (
      SELECT sink, lane, seq, next_attempt_at, min(seq) OVER (PARTITION BY sink, lane) AS first FROM deliveries WHERE state = 'pending')
    WHERE (seq = first) <> (next_attempt_at IS NOT NULL)`)
}

export interface OtherProcess {
  /** The next line that it says. */
  next(): Promise<string>
  /** SIGKILL, and gone. */
  kill(): Promise<void>
}

/** A second process on the same file, really. */
export function spawnProcess(role: 'hold' | 'deliver' | 'replay', path: string): OtherProcess {
  const script = fileURLToPath(new URL('outbox-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script, role, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(kill)
  return {
    async next() {
      const { value } = await lines.next()
      return String(value)
    },
    kill,
  }
}
