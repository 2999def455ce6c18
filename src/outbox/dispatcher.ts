import type { DeliveryOutcome, Sink, SinkLog } from '../../sinks/contract.ts'
import { startAttempt, type Attempt } from './attempt.ts'
import type { DueRow } from './due.ts'
import { createFlusher } from './flusher.ts'
import { judge, sumOf, type Finished, type Judged } from './judge.ts'
import { createPacing } from './pacing.ts'
import { longestRetryAfterMs } from './retry-schedule.ts'
import type { Settled } from './settle.ts'
import { createHealthKeeper, type SinkHealth } from './sink-health.ts'
import { createStoreGuard } from './store-guard.ts'
import type { Store } from './store.ts'
import { parseStoredEvent } from './stored-event.ts'

export type { SinkHealth } from './sink-health.ts'

interface SettledDetails {
  /** From the commit of the event to the outcome. */
  readonly latencyMs: number
  /** This one included. */
  readonly attempts: number
}

export interface DispatcherOptions {
  readonly store: Pick<Store, 'due' | 'nextDueAfter' | 'settle' | 'clampSchedule' | 'readSink' | 'revision'>
  readonly sink: Pick<Sink, 'deliver'>
  readonly name: string
  /** Deliveries in flight at once, each of another lane. */
  readonly concurrency?: number
  /** For one delivery; then its signal aborts and it is tried again later. */
  readonly timeoutMs?: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** A number in [0, 1). */
  readonly random: () => number
  readonly log: SinkLog
  /** Called once for each attempt, after its outcome is in the store. An event that expired is `rejected` with the code `expired`. */
  readonly onSettled?: (id: string, outcome: DeliveryOutcome, details: SettledDetails) => void
}

export interface Dispatcher {
  /** Idempotent. */
  start(): void
  /** Something was committed: what is due and has a free place is handed to the sink before this returns. */
  wake(): void
  /**
   * Delivers until nothing is in flight, and nothing is due or the sink is held back, or until `signal` aborts: then false. Starts by itself.
   */
  drain(options: { readonly signal: AbortSignal }): Promise<boolean>
  /** Stops now: what is in flight is aborted and stays pending, but for what the sink still reports as done. Idempotent. */
  close(): Promise<void>
  health(): SinkHealth
}

/** Outcomes beyond which nothing is started: bounds memory while the store fails. */
const mostOutcomes = 256
/** Heads that are looked up at once, for each delivery that may be in flight. */
const lookAhead = 4
/** How often changes by other processes, and a clock that was set back, are looked for. */
const lookMs = 1000
const defaultConcurrency = 16
const defaultTimeoutMs = 30_000

/**
 * Drives one sink. A row goes through: armed in the store -> `ready` (looked up in small windows) -> in flight -> outcome
 * collected -> flushed. A lane is busy from in flight to flushed, so its next event starts only when the fate of the one before is in the store.
 *
 * `pump` starts whatever may be started; everything that could change what may be (a commit, an outcome, a flush, a timer, another process)
 * ends in a call of it. Where the store fails, outcomes are kept, nothing new is started, and it is tried again.
 */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, sink, name, now, random, log } = options
  const concurrency = options.concurrency ?? defaultConcurrency
  const window = lookAhead * concurrency
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs
  const pacing = createPacing({ concurrency, now, random })
  const health = createHealthKeeper({ name, now, log })

  let phase: 'new' | 'running' | 'closed' = 'new'
  let pumping = false
  let closed: Promise<void> | undefined

  const inFlight = new Set<Attempt>()
  /** Lanes that have an event between its start and the flush of its outcome, with the `seq` of that. */
  const busy = new Map<string, number>()
  /** Of lanes that are not busy, the next one last; one lookup gives one row a lane. */
  let ready: DueRow[] = []
  /** When the store was last asked and had no more than it gave; undefined where it must be asked again. */
  let exhaustedAt: number | undefined
  const guard = createStoreGuard({ name, log, retry })
  const outcomes = createFlusher(write)

  let revision = ''
  let lastLook = 0
  let looking: NodeJS.Timeout | undefined
  let timer: NodeJS.Timeout | undefined
  const whenIdle = new Set<() => void>()
  /** Resolved when nothing is in flight any more after `close()`. */
  const landed = Promise.withResolvers<void>()

  function start(): void {
    if (phase !== 'new') return
    phase = 'running'
    lastLook = now()
    looking = setInterval(look, lookMs)
    guard.attempt(() => {
      revision = store.revision()
      store.clampSchedule(name, longestRetryAfterMs)
      pacing.hold(Math.min(store.readSink(name).heldUntil ?? 0, now() + longestRetryAfterMs))
      readHalt()
    })
    pump()
  }

  /** The halt as it is stored: after a restart, or after a command of another process. One of ours may not be flushed yet. */
  function readHalt(): void {
    const { haltedReason } = store.readSink(name)
    if (haltedReason !== null) health.halted(haltedReason)
    else if (health.current().state === 'halted' && !outcomes.waiting().some(({ verdict }) => verdict.halted !== undefined)) {
      health.resumed()
      pacing.reset()
    }
  }

  function refresh(): void {
    ready = []
    exhaustedAt = undefined
  }

  function wake(): void {
    refresh()
    pump()
  }

  /** Another process, or a command here, may have dropped, replayed or given up what was looked up. Costs microseconds. */
  function noticeOthers(): boolean {
    const current = store.revision()
    if (current === revision) return false
    revision = current
    refresh()
    readHalt()
    return true
  }

  /** Once a second. */
  function look(): void {
    if (guard.failing()) return
    const at = now()
    const setBack = at < lastLook - lookMs
    lastLook = at
    let changed = setBack
    guard.attempt(() => {
      if (setBack) {
        store.clampSchedule(name, longestRetryAfterMs)
        pacing.reset()
      }
      if (noticeOthers()) changed = true
    })
    if (changed) wake()
  }

  function mayStart(): boolean {
    return (
      phase === 'running' &&
      !guard.failing() &&
      health.current().state !== 'halted' &&
      inFlight.size < pacing.limit() &&
      outcomes.waiting().length < mostOutcomes &&
      now() >= pacing.heldUntil()
    )
  }

  function pump(): void {
    // A sink may call back into us from within `deliver`.
    if (pumping) return
    pumping = true
    try {
      guard.attempt(() => {
        for (let row = nextReady(); row !== undefined; row = nextReady()) begin(row)
        schedule()
      })
    } finally {
      pumping = false
    }
    if (isIdle()) for (const resolve of whenIdle) resolve()
  }

  function nextReady(): DueRow | undefined {
    while (mayStart()) {
      if (ready.length > 0 && noticeOthers()) continue
      const row = ready.pop()
      if (row !== undefined) return row
      if (exhaustedAt !== undefined) return undefined
      // The heads of busy lanes are still due in the store.
      const at = now()
      const rows = store.due(name, at, window, [...busy.values()])
      if (rows.length < window) exhaustedAt = at
      ready = rows.filter((found) => !busy.has(found.lane)).toReversed()
      if (ready.length === 0) return undefined
    }
    return undefined
  }

  function begin({ body, ...row }: DueRow): void {
    const event = parseStoredEvent(body)
    const id = event?.id ?? null
    const giveUp = (code: string, detail: string): void => {
      collect({ row, id, startedAt: null, endedAt: now(), outcome: { status: 'rejected', code, detail } })
    }
    busy.set(row.lane, row.seq)
    if (event === undefined) return giveUp('unreadable', 'the stored text of the event is damaged')
    const startedAt = now()
    if (row.expiresAt <= startedAt) return giveUp('expired', `not delivered by the end of its time, after ${row.attempts} attempts`)

    const attempt = startAttempt(sink, event, timeoutMs, (outcome) => {
      inFlight.delete(attempt)
      // Aborted by us: it stays as it was, and is sent again after the next start.
      if (phase === 'running' || outcome.status !== 'retry') collect({ row, id, startedAt, endedAt: now(), outcome })
      if (phase === 'running') pump()
      else if (inFlight.size === 0) landed.resolve()
    })
    inFlight.add(attempt)
  }

  function collect(finished: Finished): void {
    // Nothing else can be started: perhaps the next event of this lane can, once this is written.
    const atOnce = inFlight.size === 0 || (ready.length === 0 && exhaustedAt !== undefined)
    outcomes.add(judge(finished, pacing, health), atOnce)
  }

  function write(batch: readonly Judged[]): boolean {
    if (guard.failing() && phase === 'running') return false
    let settled: Settled | undefined
    guard.attempt(() => {
      settled = store.settle(
        name,
        batch.map(({ settlement }) => settlement),
        sumOf(batch),
      )
    })
    if (settled === undefined) return false
    for (const { settlement } of batch) busy.delete(settlement.lane)
    // What is ready stays so, unless there is something new to choose from.
    if (settled.moreToDo) refresh()
    for (const judged of batch) {
      // Whoever gave it up meanwhile has told it.
      if (judged.settlement.status !== 'dead' || !settled.moot.has(judged.settlement.seq)) tell(judged)
    }
    pump()
    return true
  }

  function tell({ row, settlement, id, outcome, endedAt, attempts }: Judged): void {
    if (settlement.status === 'dead') {
      const { code, detail } = settlement
      log.warn({ sink: name, id, code, detail, attempts }, `an event is a dead letter of the sink ${name}`)
    }
    if (id !== null) options.onSettled?.(id, outcome, { latencyMs: Math.max(0, endedAt - row.createdAt), attempts })
  }

  /** One timer, for the next thing that time alone brings about. */
  function schedule(): void {
    clearTimeout(timer)
    if (phase !== 'running' || guard.failing() || health.current().state === 'halted') return
    if (inFlight.size >= pacing.limit() || outcomes.waiting().length >= mostOutcomes) return
    const at = now()
    const held = pacing.heldUntil()
    const wakeAt = held > at ? held : exhaustedAt === undefined ? undefined : store.nextDueAfter(name, exhaustedAt)
    if (wakeAt !== undefined) timer = setTimeout(wake, Math.min(Math.max(wakeAt - at, 1), longestRetryAfterMs))
  }

  function retry(): void {
    refresh()
    outcomes.flush()
    pump()
  }

  /** Nothing under way, and nothing that could be started now. */
  function isIdle(): boolean {
    if (inFlight.size > 0 || outcomes.waiting().length > 0 || guard.failing()) return false
    return exhaustedAt !== undefined || !mayStart()
  }

  async function drain({ signal }: { readonly signal: AbortSignal }): Promise<boolean> {
    start()
    wake()
    if (!isIdle() && !signal.aborted && phase === 'running') {
      const { promise, resolve } = Promise.withResolvers<void>()
      const stop = (): void => resolve()
      whenIdle.add(stop)
      signal.addEventListener('abort', stop, { once: true })
      await promise
      signal.removeEventListener('abort', stop)
      whenIdle.delete(stop)
    }
    return phase === 'running' && isIdle()
  }

  async function shutDown(): Promise<void> {
    phase = 'closed'
    clearInterval(looking)
    clearTimeout(timer)
    guard.close()
    for (const resolve of whenIdle) resolve()
    for (const attempt of inFlight) attempt.abort()
    if (inFlight.size > 0) await landed.promise
    outcomes.flush()
  }

  return {
    start,
    wake,
    drain,
    close: () => (closed ??= shutDown()),
    health: () => health.current(),
  }
}
