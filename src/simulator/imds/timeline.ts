import type { Scenario, ScenarioEvent } from './scenario.ts'

/** A StartRequests that was answered 200, by EventId in any case. */
export interface Approval {
  readonly eventId: string
  readonly atSeconds: number
}

/** An event that is in the document. */
export interface VisibleEvent {
  readonly event: ScenarioEvent
  readonly status: 'Scheduled' | 'Started'
  /** Scenario seconds at which it starts unless it is approved. */
  readonly notBeforeSeconds: number
  readonly approved: boolean
}

/** Where a scenario stands. */
export interface Moment {
  readonly incarnation: number
  /** In the order of the scenario file. */
  readonly events: readonly VisibleEvent[]
  /** The next time something changes unless it is approved before; null: nothing will. */
  readonly nextSeconds: number | null
  /** The story is over. */
  readonly ended: boolean
}

/**
 * One event on its way: absent → scheduled → started → gone, or scheduled → gone where it is cancelled.
 * Times are whole milliseconds, so that sums which should meet do meet.
 */
interface Life {
  readonly event: ScenarioEvent
  readonly appearsAt: number
  phase: 'absent' | 'scheduled' | 'started' | 'gone'
  notBefore: number
  rescheduled: number
  approved: boolean
  /** When nothing but the delay stood between it and its start any more; null: an approval is missing, its own or another's. */
  releasedAt: number | null
  startedAt: number
}

/**
 * Plays a scenario from its beginning to `elapsedSeconds`. Pure. All changes of one instant raise the incarnation by one;
 * what is there at second 0 is no change. A restart sets the incarnation, whatever changes with it.
 */
export function timelineAt(scenario: Scenario, elapsedSeconds: number, approvals: readonly Approval[]): Moment {
  const until = toMs(elapsedSeconds)
  const lives = scenario.events.map(unborn)
  let incarnation = scenario.incarnation
  let next: number | null = 0
  while (next !== null && next <= until) {
    const now = next
    let changed = false
    while (step(lives, now, approvals)) changed = true
    const restart = scenario.restarts.find(({ atSeconds }) => toMs(atSeconds) === now)
    if (restart !== undefined) incarnation = restart.incarnation
    else if (changed && now > 0) incarnation += 1
    next = earliestAfter(now, [
      ...lives.flatMap(dueTimes),
      ...approvals.map(({ atSeconds }) => toMs(atSeconds)),
      ...scenario.restarts.map(({ atSeconds }) => toMs(atSeconds)),
    ])
  }
  const pending = [next, earliestAfter(until, otherTimes(scenario))].filter((time) => time !== null)
  const end = scenario.endsAtSeconds
  return {
    incarnation,
    events: lives.flatMap(visible),
    nextSeconds: pending.length === 0 ? null : Math.min(...pending) / 1000,
    ended: end === undefined ? pending.length === 0 : until >= toMs(end),
  }
}

const toMs = (seconds: number): number => Math.round(seconds * 1000)

function unborn(event: ScenarioEvent): Life {
  const appearsAt = toMs(event.appearsAtSeconds)
  const notBefore = appearsAt + toMs(event.noticeSeconds)
  return { event, appearsAt, phase: 'absent', notBefore, rescheduled: 0, approved: false, releasedAt: null, startedAt: 0 }
}

function visible(life: Life): VisibleEvent[] {
  if (life.phase !== 'scheduled' && life.phase !== 'started') return []
  const status = life.phase === 'started' ? 'Started' : 'Scheduled'
  return [{ event: life.event, status, notBeforeSeconds: life.notBefore / 1000, approved: life.approved }]
}

/** Frames, faults and the end do not touch events, but they are part of the story. */
function otherTimes(scenario: Scenario): number[] {
  return [
    ...(scenario.documents ?? []).map(({ atSeconds }) => atSeconds),
    ...scenario.faults.flatMap(({ atSeconds, forSeconds }) => [atSeconds, atSeconds + forSeconds]),
    ...(scenario.endsAtSeconds === undefined ? [] : [scenario.endsAtSeconds]),
  ].map(toMs)
}

function earliestAfter(now: number, times: readonly number[]): number | null {
  const later = times.filter((time) => time > now)
  return later.length === 0 ? null : Math.min(...later)
}

/** When a life goes on by itself. */
function dueTimes(life: Life): number[] {
  switch (life.phase) {
    case 'absent':
      return [life.appearsAt]
    case 'scheduled':
      return [startOf(life), cancelOf(life), rescheduleOf(life)?.at ?? Number.POSITIVE_INFINITY].filter(Number.isFinite)
    case 'started':
      return [life.startedAt + toMs(life.event.startedForSeconds)]
    default:
      return []
  }
}

const cancelOf = ({ event, appearsAt }: Life): number => appearsAt + toMs(event.cancelAfterSeconds ?? Number.POSITIVE_INFINITY)

function startOf({ event, notBefore, releasedAt }: Life): number {
  return releasedAt === null ? notBefore : Math.min(notBefore, releasedAt + toMs(event.approvalDelaySeconds))
}

function rescheduleOf({ event, appearsAt, rescheduled }: Life): { at: number; notBefore: number } | undefined {
  const change = event.reschedule[rescheduled]
  if (change === undefined) return undefined
  const at = appearsAt + toMs(change.afterSeconds)
  return { at, notBefore: at + toMs(change.noticeSeconds) }
}

/** Does what is due at `now`. True when the document changed, and then more may be due: a cancelled Terminate releases the others. */
function step(lives: readonly Life[], now: number, approvals: readonly Approval[]): boolean {
  let changed = false
  for (const life of lives) changed = appearOrMove(life, now) || changed
  for (const { eventId, atSeconds } of approvals) if (toMs(atSeconds) === now) approve(lives, eventId)
  for (const life of lives) if (life.releasedAt === null && isReleased(life, lives)) life.releasedAt = now
  for (const life of lives) changed = startOrEnd(life, now) || changed
  return changed
}

function appearOrMove(life: Life, now: number): boolean {
  if (life.phase === 'absent' && life.appearsAt <= now) {
    life.phase = life.event.status === 'Started' ? 'started' : 'scheduled'
    life.startedAt = now
    return true
  }
  const change = life.phase === 'scheduled' ? rescheduleOf(life) : undefined
  if (change === undefined || change.at > now) return false
  life.rescheduled += 1
  life.notBefore = change.notBefore
  return true
}

function approve(lives: readonly Life[], eventId: string): void {
  const key = eventId.toLowerCase()
  for (const life of lives) if (life.phase === 'scheduled' && life.event.id.toLowerCase() === key) life.approved = true
}

/** Deletes with the same NotBefore proceed only once all of them are approved. Anything else needs its own approval alone. */
function isReleased(life: Life, lives: readonly Life[]): boolean {
  if (life.phase !== 'scheduled' || !life.approved) return false
  if (life.event.type !== 'Terminate') return true
  return lives.every(
    (other) => other.event.type !== 'Terminate' || other.phase !== 'scheduled' || other.notBefore !== life.notBefore || other.approved,
  )
}

function startOrEnd(life: Life, now: number): boolean {
  if (life.phase === 'scheduled' && startOf(life) <= now) {
    life.phase = 'started'
    life.startedAt = now
    return true
  }
  const over =
    life.phase === 'scheduled' ? cancelOf(life) : life.phase === 'started' ? life.startedAt + toMs(life.event.startedForSeconds) : null
  if (over === null || over > now) return false
  life.phase = 'gone'
  return true
}
