import { attributeBroken } from './attribute-broken.ts'
import { type Continuity, continuityOf } from './continuity.ts'
import { digest16 } from './digest.ts'
import { incarnationNumber } from './incarnation.ts'
import { fromIso } from './instant.ts'
import { mergeDuplicates } from './merge-duplicates.ts'
import type { DiffResult, EndedEvent, Evidence, LiveEvent, Reading, RememberedState, ScheduledEvent, Transition } from './model.ts'
import { namesThisVm } from './names.ts'
import { oddEntries, oddIncarnation, oddTransition } from './oddities.ts'
import { emptyState } from './remembered.ts'
import { statusName, terminalOutcome } from './status.ts'
import { tellOnce } from './told-anomalies.ts'
import { enterState, leave, newcomer, seenAgain } from './transitions.ts'
import { type Absence, judge, type Verdict } from './verdict.ts'

/** Endings that are remembered so that the same id again is a next generation: the newest, for 30 days. */
const maxEnded = 1000
const endedForMs = 30 * 24 * 60 * 60 * 1000

/** One reading in the making: what is known, and what becomes of it. */
interface Draft {
  readonly state: RememberedState
  readonly reading: Reading
  readonly continuity: Continuity
  /** An entry of the document may be any event that is absent from it. */
  readonly unattributed: boolean
  readonly live: Map<string, LiveEvent>
  readonly ended: Map<string, EndedEvent>
  readonly transitions: Transition[]
}

/**
 * From what is remembered and one accepted document to what is remembered next and what is to be told. A failed poll never comes here: it
 * says nothing about any event.
 *
 * Invariant: folding the transitions (a state sets the event, an end removes it) gives back the content of `state.live`, which is the
 * last document that was accepted whole, less what has a terminal status.
 */
export function diff(remembered: RememberedState, reading: Reading): DiffResult {
  const state = isOtherMachine(remembered, reading) ? emptyState : remembered
  const { document } = reading
  const { events, duplicates } = mergeDuplicates(document.events)
  const absent = Object.entries(state.live).filter(([key]) => !events.has(key))
  const { standing, unattributed } = attributeBroken(document.broken, absent)
  const draft: Draft = {
    state,
    reading,
    continuity: continuityOf(state, reading),
    unattributed,
    live: new Map(Object.entries(state.live)),
    ended: new Map(Object.entries(state.ended)),
    transitions: [],
  }
  if (!draft.continuity.stale) {
    for (const [key, known] of absent) if (!standing.has(key)) miss(draft, key, known)
  }
  for (const [key, event] of events) meet(draft, key, event)
  forgetEnded(draft, events)

  const oddities = [
    ...oddEntries(document, duplicates),
    ...oddIncarnation(state, document, draft.continuity),
    ...draft.transitions.flatMap(oddTransition),
  ]
  const { anomalies, told } = tellOnce(state.toldAnomalies, oddities)
  return { state: nextState(draft, told), transitions: draft.transitions.toSorted(byOrderOfTelling), anomalies }
}

/** The disk was cloned into another machine: what the old one saw is none of its business. */
function isOtherMachine(state: RememberedState, { vmId }: Reading): boolean {
  return state.vmId !== null && vmId !== null && state.vmId.toLowerCase() !== vmId.toLowerCase()
}

/** An event that stands in the document. */
function meet(draft: Draft, key: string, event: ScheduledEvent): void {
  const known = draft.live.get(key)
  const ended = draft.ended.get(key)
  const isNew = known === undefined && ended === undefined
  if (draft.continuity.stale && !isNew) return
  if (terminalOutcome(event.eventStatus) !== null) {
    // One that ended already may stand there with its terminal status for as long as it likes.
    if (known !== undefined || isNew) endByStatus(draft, key, known ?? newcomer(event, 1), event)
  } else if (known === undefined) {
    tellState(draft, key, newcomer(event, (ended?.generation ?? 0) + 1), event)
  } else if (isSameStatus(known.event, event) && losesContent(known.event, event)) {
    draft.live.set(key, seenAgain(known, known.event, draft.reading, draft.continuity.epoch))
  } else if (digest16(known.event) === digest16(event)) {
    draft.live.set(key, seenAgain(known, event, draft.reading, draft.continuity.epoch))
  } else {
    tellState(draft, key, known, event)
  }
}

/** An event that stands in the document no more. */
function miss(draft: Draft, key: string, known: LiveEvent): void {
  endWith(draft, key, known, known.event, judge(absenceOf(draft, known)))
}

function tellState(draft: Draft, key: string, before: LiveEvent, event: ScheduledEvent): void {
  const { transition, live } = enterState(key, before, event, draft.reading, draft.continuity.epoch)
  draft.live.set(key, live)
  draft.ended.delete(key)
  push(draft, transition)
}

function endByStatus(draft: Draft, key: string, before: LiveEvent, event: ScheduledEvent): void {
  const evidence: Evidence = {
    rule: 'status',
    d: distance(draft, before),
    gapSeconds: draft.continuity.gapMs / 1000,
    bootChanged: draft.continuity.bootChanged,
  }
  endWith(draft, key, before, event, { outcome: terminalOutcome(event.eventStatus) ?? 'completed', evidence })
}

function endWith(draft: Draft, key: string, before: LiveEvent, event: ScheduledEvent, verdict: Verdict): void {
  const { transition, ended } = leave(key, before, event, draft.reading, verdict)
  draft.live.delete(key)
  draft.ended.delete(key)
  draft.ended.set(key, ended)
  push(draft, transition)
}

/** Notes it where the content changed under an incarnation that did not. */
function push(draft: Draft, transition: Transition): void {
  const before = Object.hasOwn(draft.state.live, transition.key) ? draft.state.live[transition.key] : undefined
  const then = incarnationNumber(before === undefined ? draft.state.incarnation : before.incarnation)
  const same =
    then !== null && then === incarnationNumber(transition.incarnation) && (before?.epoch ?? draft.state.epoch) === draft.continuity.epoch
  draft.transitions.push(same && transition.anomaly === undefined ? { ...transition, anomaly: 'same-incarnation' } : transition)
}

function absenceOf(draft: Draft, known: LiveEvent): Absence {
  const { continuity, reading, state } = draft
  const status = statusName(known.event.eventStatus)
  const notBefore = known.lastNotBefore === null ? null : fromIso(known.lastNotBefore)
  return {
    lastStatus: status === 'scheduled' || status === 'started' ? status : 'other',
    hadStarted: known.startedAt !== null,
    d: distance(draft, known),
    gapSeconds: continuity.gapMs / 1000,
    bootChanged: continuity.bootChanged,
    approved: known.approved,
    restartsThisVm: /^(?:reboot|redeploy)$/i.test(known.event.eventType) && namesThisVm(known.event.resources, reading.vmName) === true,
    notBeforePassed: notBefore !== null && notBefore > (state.lastGoodPollAt ?? reading.at) && notBefore <= reading.at,
    inconclusive: continuity.inconclusive ?? (draft.unattributed ? 'unreadable' : null),
  }
}

function distance({ reading, continuity }: Draft, known: LiveEvent): number | null {
  const now = incarnationNumber(reading.document.incarnation)
  const then = incarnationNumber(known.incarnation)
  return now === null || then === null || known.epoch !== continuity.epoch ? null : now - then
}

const isSameStatus = (before: ScheduledEvent, after: ScheduledEvent): boolean =>
  statusName(before.eventStatus) === statusName(after.eventStatus)

/** A part of the content that was readable before is not now: nothing to compare with, and no change by itself. */
function losesContent(before: ScheduledEvent, after: ScheduledEvent): boolean {
  return after.unreadable?.some((field) => before.unreadable?.includes(field) !== true) ?? false
}

/** What stands in the document with a terminal status stays remembered, else it would be told again. */
function forgetEnded({ ended, reading }: Draft, standing: ReadonlyMap<string, ScheduledEvent>): void {
  const oldestFirst = [...ended].filter(([key]) => !standing.has(key)).toSorted(([, a], [, b]) => a.endedAt - b.endedAt)
  const surplus = ended.size - maxEnded
  for (const [index, [key, { endedAt }]] of oldestFirst.entries()) {
    if (index < surplus || reading.at - endedAt > endedForMs) ended.delete(key)
  }
}

function nextState({ state, reading, continuity, live, ended }: Draft, toldAnomalies: readonly string[]): RememberedState {
  const vmId = reading.vmId ?? state.vmId
  const events = { live: Object.fromEntries(live), ended: Object.fromEntries(ended) }
  if (continuity.stale) return { ...state, ...events, vmId, lowerReading: true, toldAnomalies }
  return {
    ...events,
    vmId,
    bootId: reading.bootId ?? state.bootId,
    lastGoodPollAt: reading.at,
    incarnation: reading.document.incarnation,
    epoch: continuity.epoch,
    lowerReading: false,
    toldAnomalies,
  }
}

/** Ends first, then by NotBefore, the earliest first and unknown ones last, then by key. */
function byOrderOfTelling(a: Transition, b: Transition): number {
  if (a.kind !== b.kind) return a.kind === 'end' ? -1 : 1
  return compare(a.notBefore ?? '~', b.notBefore ?? '~') || compare(a.key, b.key)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
