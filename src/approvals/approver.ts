import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { type Identity, type Scope, sourceOf } from '../events/identity.ts'
import { mergeDuplicates } from '../lifecycle/merge-duplicates.ts'
import type { EventsDocument, RememberedState, ScheduledEvent } from '../lifecycle/model.ts'
import type { Observer } from '../observer.ts'
import type { ApprovalRow, FinalApproval } from '../outbox/approvals.ts'
import type { Store } from '../outbox/store.ts'
import { parseStoredEvent } from '../outbox/stored-event.ts'
import { buildApprovalEvent, type Outcome } from './approval-event.ts'
import { judgeEvent, judgeMessage, type GateRules } from './gate.ts'
import { isCode, mayPass, provesId, type Code, type Refusal } from './reason.ts'
import type { Relay } from './relay.ts'
import type { ApprovalRequest, Via, Wanted } from './request.ts'
import { explainTerminate } from './terminate.ts'

export interface Ask {
  readonly request: ApprovalRequest
  /** Identifies this very message: queue and sequence number, equal for every delivery of it; for policy and command, the request itself. */
  readonly delivery: string
  /** There will be no other try: a reason that may pass is final now. */
  readonly last: boolean
  readonly signal: AbortSignal
}

/** What came of a request, for each event that it asks for. */
interface Verdict {
  /** For settlement: a hold that was carried out is `ok` here. */
  readonly codes: readonly Code[]
  /** Those that are final, told now or at an earlier delivery of the same message. */
  readonly events: readonly CloudEvent[]
  readonly detail: string
}

/** `unread`: IMDS or this VM's own name cannot be read now; nothing was decided. */
export type Decided = ({ readonly kind: 'verdict' } & Verdict) | { readonly kind: 'unread'; readonly detail: string }

export interface Approver {
  /**
   * Judges and relays one request at a time, in the order in which they came; a hold at once. Whatever is final is committed, with the event
   * that tells it, before this resolves. Rejects with the reason of the signal, and with what the store throws.
   */
  decide(ask: Ask): Promise<Decided>
  /** Tells a no that was found outside of the gate. Throws what the store throws. */
  refuse(ask: Omit<Ask, 'signal' | 'last'>, refusal: Refusal): void
}

export interface ApproverOptions {
  readonly relay: Relay
  readonly store: Pick<Store, 'findApprovals' | 'recordApproval' | 'countPosted' | 'holds'>
  readonly observer: Pick<Observer, 'state' | 'observe' | 'settle'>
  readonly identity: () => Identity | null
  readonly rules: GateRules
  /** Signatures that a message of the queue needs; 0 where it needs none. */
  readonly quorum: number
  readonly prefix: string
  readonly scope: Scope
  readonly now: () => number
  readonly onOutcome: (
    outcome: Pick<Outcome, 'code' | 'detail' | 'wanted' | 'attempts'> & { readonly via: Via; readonly requestedBy: string | null },
  ) => void
}

/** What is known of one event that a request asks for. */
interface Case {
  readonly wanted: Wanted | null
  readonly key: string
  readonly event: ScheduledEvent | null
  readonly code: Code
  readonly detail: string
  readonly attempts: number
  /** A hold was carried out. */
  readonly hold?: true
}

/**
 * The one way of every approval: gate, a fresh look at IMDS, gate again, record, POST, outcome. A row in the store says how far a request came:
 * nothing -> `recorded` (a POST may be on its way) -> `final`. A crash leaves a row at `recorded`; when the message comes again, IMDS is read
 * again, and what is no longer Scheduled is not posted again.
 */
export function createApprover(options: ApproverOptions): Approver {
  const { relay, store, observer, identity, rules, now } = options
  let queue: Promise<unknown> = Promise.resolve()

  const decide = async (ask: Ask): Promise<Decided> => {
    const who = identity()
    if (who === null) return { kind: 'unread', detail: 'this VM is not known yet' }
    const { request, delivery, signal } = ask
    const requestKey = keyOf(request, delivery)
    const earlier = store.findApprovals(requestKey)
    const ours = earlier.every((row) => row.delivery === delivery)
    const replayed = earlier.length > 0 && earlier.every(({ state }) => state === 'final') && !ours
    const refusal = judgeMessage({ request, now: now(), addresses: addressesOf(who, request), replayed })
    if (refusal !== null) return { kind: 'verdict', ...tell(ask, request.wanted.length === 0 ? [null] : request.wanted, refusal, who) }

    const done = new Map(earlier.filter(({ state }) => state === 'final').map((row) => [row.eventKey, row]))
    const attemptsBefore = new Map(earlier.map((row) => [row.eventKey, row.attempts]))
    const open = request.wanted.filter(({ eventId }) => !done.has(eventId.toLowerCase()))
    if (open.length === 0) return { kind: 'verdict', ...verdictOf([], [...done.values()]) }

    const fresh = await relay.read(signal)
    if (!fresh.ok) return { kind: 'unread', detail: fresh.detail }
    showFirst(fresh.document, open)

    let document = fresh.document
    const judge = (wanted: Wanted, recent: number): Case => caseOf(wanted, document, who, request, recent)
    const cases = new Map<string, Case>()
    let recent = store.countPosted(now() - rules.rateLimit.perSeconds * 1000)
    for (const wanted of open) {
      const judged = judge(wanted, recent)
      if (judged.code === 'ok' && judged.hold !== true) recent += 1
      cases.set(judged.key, { ...judged, attempts: attemptsBefore.get(judged.key) ?? 0 })
    }

    const approvable = (): Case[] => [...cases.values()].filter(({ code, hold }) => code === 'ok' && hold !== true)
    const candidates = approvable()
    if (candidates.length > 0) {
      const result = await relay.relay(
        candidates.map(spelling),
        document,
        {
          record: () => {
            const keys = approvable().map(({ key }) => key)
            store.recordApproval(requestKey, keys, delivery)
            for (const one of approvable()) cases.set(one.key, { ...one, attempts: one.attempts + 1 })
          },
          stillGood: (read) => {
            document = read
            // The message too: it may have run out while a POST was repeated. That an event has started meanwhile says more.
            const over = judgeMessage({ request, now: now(), addresses: addressesOf(who, request), replayed: false })
            for (const one of approvable()) {
              if (one.wanted === null) continue
              const again = judge(one.wanted, 0)
              cases.set(one.key, { ...again, ...(again.code === 'ok' ? over : null), attempts: one.attempts })
            }
            return approvable().map(spelling)
          },
        },
        signal,
      )
      for (const one of approvable()) {
        const detail = result.accepted ? `${result.detail}${explainTerminate(one.event, document)}` : result.detail
        cases.set(one.key, { ...one, code: result.accepted ? 'ok' : 'relay_failed', detail })
      }
    }
    return { kind: 'verdict', ...finish(ask, requestKey, [...cases.values()], [...done.values()], who) }
  }

  /** An approval must not be told before the event that it is about. */
  const showFirst = (document: EventsDocument, wanted: readonly Wanted[]): void => {
    const { live } = observer.state()
    const { events } = mergeDuplicates(document.events)
    const isNew = wanted.some(({ eventId }) => events.has(eventId.toLowerCase()) && !Object.hasOwn(live, eventId.toLowerCase()))
    if (isNew) observer.observe(document)
  }

  const caseOf = (wanted: Wanted, document: EventsDocument, who: Identity, request: ApprovalRequest, recent: number): Case => {
    const key = wanted.eventId.toLowerCase()
    const event = mergeDuplicates(document.events).events.get(key) ?? null
    const refusal = judgeEvent({
      wanted,
      event,
      vmName: who.vmName,
      rules,
      held: store.holds().some((hold) => hold.eventKey === key),
      signatures: request.signed?.signatures ?? [],
      quorum: request.via === 'queue' ? options.quorum : 0,
      recent,
    })
    const judged = { wanted, key, event, attempts: 0 }
    if (refusal !== null) return { ...judged, ...refusal }
    if (wanted.command !== 'hold') return { ...judged, code: 'ok', detail: '' }
    return { ...judged, code: 'held', detail: 'no approval of this event is relayed from now on; Azure starts it at NotBefore', hold: true }
  }

  const tell = (
    ask: Omit<Ask, 'signal' | 'last'>,
    wanted: readonly (Wanted | null)[],
    refusal: Refusal,
    who: Identity,
    live: RememberedState['live'] = {},
  ): Verdict => {
    const { request, delivery } = ask
    const requestKey = refusal.code !== 'replayed' && provesId(refusal.code) ? keyOf(request, delivery) : deliveryKey(delivery)
    const done = new Map(store.findApprovals(requestKey).map((row) => [row.eventKey, row]))
    const cases = wanted
      .map((one): Case => {
        const key = one?.eventId.toLowerCase() ?? ''
        const event = Object.hasOwn(live, key) ? (live[key]?.event ?? null) : null
        return { wanted: one, key, event, ...refusal, attempts: done.get(key)?.attempts ?? 0 }
      })
      .filter(({ key }) => done.get(key)?.state !== 'final')
    return finish({ ...ask, last: true }, requestKey, cases, [...done.values()], who)
  }

  /** Commits what is final. */
  const finish = (
    { request, delivery, last }: Omit<Ask, 'signal'>,
    requestKey: string,
    cases: readonly Case[],
    done: readonly ApprovalRow[],
    who: Identity,
  ): Verdict => {
    const at = now()
    const context = { prefix: options.prefix, scope: options.scope, identity: who }
    const final = cases
      .filter(({ code }) => last || !mayPass(code))
      .map((one) => {
        // Signatures that were not enough prove nothing: whoever adds the missing one may send the same again.
        const key = provesId(one.code) ? requestKey : deliveryKey(delivery)
        const told = { ...one, detail: `${one.detail}${explainAttempts(one)}`, requestKey: key }
        return { ...told, told: buildApprovalEvent({ ...told, request, at }, context) }
      })
    if (final.length > 0) {
      observer.settle({
        events: final.map(({ told }) => told),
        approvals: final.map((one): FinalApproval => ({
          request: one.requestKey,
          eventKey: one.key,
          delivery,
          code: one.hold === true ? 'ok' : one.code,
          attempts: one.attempts,
          expiresAt: request.validity.expiresAt,
          event: JSON.stringify(one.told),
        })),
        holds: final.filter(({ hold }) => hold).map(({ key }) => ({ eventKey: key, requestedBy: request.requestedBy, heldAt: at })),
        approved: final.filter(({ code }) => code === 'ok').map(({ key }) => key),
      })
      for (const one of final) options.onOutcome({ ...one, via: request.via, requestedBy: request.requestedBy })
    }
    const verdict = verdictOf(cases, done)
    return { ...verdict, events: [...verdict.events, ...final.map(({ told }) => told)] }
  }

  return {
    decide(ask) {
      // A hold must stop the repeating of a POST, so it does not wait behind it.
      if (ask.request.wanted.length > 0 && ask.request.wanted.every(({ command }) => command === 'hold')) return decide(ask)
      const decided = queue.then(() => {
        ask.signal.throwIfAborted()
        return decide(ask)
      })
      queue = decided.catch(() => {})
      return decided
    },
    refuse(ask, refusal) {
      const who = identity()
      if (who !== null) tell(ask, ask.request.wanted, refusal, who, observer.state().live)
    },
  }
}

/** What was decided before stands; a hold that was carried out counts as done. */
function verdictOf(cases: readonly Case[], done: readonly ApprovalRow[]): Verdict {
  const finished = done.filter(({ state }) => state === 'final')
  const events = finished.flatMap(({ event }) => (event === null ? [] : (parseStoredEvent(event) ?? [])))
  const before = finished.flatMap(({ code }) => (isCode(code) ? [code] : []))
  const detail = cases.find(({ code }) => code !== 'ok')?.detail ?? cases[0]?.detail ?? 'decided at an earlier delivery'
  return { codes: [...before, ...cases.map(({ code, hold }) => (hold === true ? 'ok' : code))], events, detail }
}

/** A refusal after a POST whose outcome is not known must not read as if none had gone out. */
function explainAttempts({ code, attempts }: Case): string {
  if (attempts === 0 || code === 'ok' || code === 'relay_failed') return ''
  return `; ${attempts === 1 ? 'a POST of ours' : `${attempts} POSTs of ours`} had gone out before, without an answer that says what became of it`
}

const spelling = ({ event, wanted }: Case): string => event?.eventId ?? wanted?.eventId ?? ''

const deliveryKey = (delivery: string): string => `delivery:${delivery}`

/** The same for every copy of a request, as far as it says which one it is. */
function keyOf({ via, replayId, signed }: ApprovalRequest, delivery: string): string {
  if (via !== 'queue') return `${via}:${delivery}`
  if (replayId === null) return deliveryKey(delivery)
  return `${signed === null ? 'message' : 'jti'}:${replayId}`
}

/** What this VM answers to. A signed approval names a source; whoever writes an unsigned one may know the machine only by its name. */
function addressesOf(who: Identity, { signed }: ApprovalRequest): string[] {
  const sources = [sourceOf(who, 'group'), sourceOf(who, 'vm')]
  const names = signed === null ? [who.vmName, who.vmId, who.resourceId, who.scaleSetId, who.scaleSet] : []
  return [...new Set([...sources, ...names].flatMap((name) => (name === null ? [] : name.toLowerCase())))]
}
