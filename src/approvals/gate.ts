import { digestOf } from '../lifecycle/digest.ts'
import type { ScheduledEvent } from '../lifecycle/model.ts'
import { isFirstResource, namesThisVm } from '../lifecycle/names.ts'
import { statusName } from '../lifecycle/status.ts'
import type { ReasonCode, Refusal } from './reason.ts'
import type { ApprovalRequest, Signature, Wanted } from './request.ts'

/** Largest body, in bytes. */
export const maxBodyBytes = 64 * 1024
const algorithms: ReadonlySet<unknown> = new Set(['ES256', 'EdDSA'])
/** Of every signature, so that nothing that was signed for another purpose can approve. */
export const typ = 'foreshock-approval+jws'
const commands: ReadonlySet<string> = new Set(['approve', 'hold'])
const skewMs = 60_000
const maxLifetimeMs = 10 * 60_000

/** What the gate knows before it has looked at IMDS. Times are milliseconds since the epoch. */
export interface MessageFacts {
  readonly request: ApprovalRequest
  readonly now: number
  /** Everything that this VM answers to, lower-case: the sources of its group and of itself, its names and ids. */
  readonly addresses: readonly string[]
  /** The outcome of this request is final already. */
  readonly replayed: boolean
}

/** `approvals` of the configuration. */
export interface GateRules {
  readonly events: 'own' | 'any'
  readonly leaderOnly: boolean
  readonly maxResources: number
  readonly eventTypes: readonly string[]
  readonly rateLimit: { readonly approvals: number; readonly perSeconds: number }
}

/** What the gate knows of one event after a fresh look at IMDS. */
export interface EventFacts {
  readonly wanted: Wanted
  /** As it stands in the document; null where it does not. */
  readonly event: ScheduledEvent | null
  readonly vmName: string | null
  readonly rules: GateRules
  readonly held: boolean
  /** Empty where nothing had to be signed. */
  readonly signatures: readonly Signature[]
  /** How many different people and keys must have signed. */
  readonly quorum: number
  /** Approvals that were relayed, or tried, within the time of the rate limit. */
  readonly recent: number
}

/** The reason against, in a line for people; null where there is none. */
type Check<Facts> = readonly [code: ReasonCode, against: (facts: Facts) => string | null]

const messageChecks: readonly Check<MessageFacts>[] = [
  ['too_large', ({ request }) => unless(request.bytes <= maxBodyBytes, `expected at most ${maxBodyBytes} bytes, got ${request.bytes}`)],
  ['malformed', ({ request }) => request.problem],
  ['bad_typ', ({ request }) => eachSignature(request, (one) => unless(one.typ === typ, `expected typ ${typ}, got ${show(one.typ)}`))],
  [
    'bad_alg',
    ({ request }) =>
      eachSignature(request, ({ alg, key }) => {
        if (!algorithms.has(alg)) return `expected alg ES256 or EdDSA, got ${show(alg)}`
        return unless(key === null || key.alg === alg, `expected alg ${key?.alg} for this key, got ${show(alg)}`)
      }),
  ],
  [
    'unknown_key',
    ({ request }) =>
      eachSignature(request, ({ key, kid }) =>
        unless(key !== null, `expected the kid of a key of the JWKS file, got ${show(kid)}: check approvers, file and rotation`),
      ),
  ],
  [
    'bad_signature',
    ({ request }) => eachSignature(request, ({ valid, kid }) => unless(valid, `the signature of ${show(kid)} does not fit the content`)),
  ],
  [
    'issuer_not_allowed',
    ({ request }) =>
      eachSignature(request, ({ key, kid }) =>
        unless(allows(key?.issuers, request.signed?.issuer), `the key ${show(kid)} does not speak for ${show(request.signed?.issuer)}`),
      ),
  ],
  ['wrong_audience', wrongAudience],
  ['not_yet_valid', notYetValid],
  ['expired', expired],
  ['lifetime_too_long', lifetimeTooLong],
  ['replayed', ({ replayed }) => unless(!replayed, 'this message was decided already')],
  [
    'unsupported_command',
    ({ request }) => {
      const odd = request.wanted.find(({ command }) => !commands.has(command))
      return odd === undefined ? null : `expected the command approve or hold, got ${show(odd.command)}`
    },
  ],
]

/** `approve`: this check keeps an approval from being relayed, and has nothing to say to a hold, which can do no harm. */
const eventChecks: readonly (readonly [...Check<EventFacts>, appliesTo: 'both' | 'approve'])[] = [
  ['event_not_visible', notVisible, 'both'],
  [
    'event_already_started',
    ({ event }) => unless(event === null || statusName(event.eventStatus) !== 'started', 'the event has started'),
    'both',
  ],
  [
    'state_changed',
    ({ event, wanted }) => {
      if (event === null || wanted.digest === null) return null
      const digest = digestOf(event)
      return unless(digest.startsWith(wanted.digest), `approved was ${wanted.digest}, the event is now ${digest.slice(0, 16)}`)
    },
    'both',
  ],
  [
    'resources_mismatch',
    ({ event, wanted }) => {
      if (event === null || wanted.resources === null) return null
      return unless(
        sameNames(event.resources, wanted.resources),
        `approved was ${list(wanted.resources)}, it hits ${list(event.resources)}`,
      )
    },
    'both',
  ],
  ['not_this_vm', notThisVm, 'approve'],
  [
    'not_leader',
    ({ event, rules, vmName }) =>
      unless(
        !rules.leaderOnly || event === null || isFirstResource(event.resources, vmName) === true,
        `leaderOnly: ${event?.resources[0] ?? 'nobody'} is the first of Resources, this VM is ${vmName ?? 'unknown'}`,
      ),
    'approve',
  ],
  [
    'too_many_resources',
    ({ event, rules }) => {
      if (event === null) return null
      // What could not be read may name anybody.
      if (event.unreadable?.includes('resources') === true) return 'Resources could not be read whole'
      const count = event.resources.length
      return unless(
        count <= rules.maxResources,
        `it would start for all ${count} machines, approvals.maxResources is ${rules.maxResources}`,
      )
    },
    'approve',
  ],
  ['event_type_not_permitted', typeNotPermitted, 'approve'],
  ['held', ({ held }) => unless(!held, 'somebody put this event on hold'), 'approve'],
  ['quorum_not_met', quorumNotMet, 'approve'],
  [
    'rate_limited',
    ({ recent, rules: { rateLimit } }) =>
      unless(recent < rateLimit.approvals, `expected at most ${rateLimit.approvals} approvals in ${rateLimit.perSeconds} s`),
    'approve',
  ],
]

/** The first reason against a message, before IMDS is asked; null lets it through. */
export function judgeMessage(facts: MessageFacts): Refusal | null {
  return first(messageChecks, facts)
}

/** The first reason against what is asked of one event; null lets it through. */
export function judgeEvent(facts: EventFacts): Refusal | null {
  const { command } = facts.wanted
  return first(
    eventChecks
      .filter(([, , appliesTo]) => appliesTo === 'both' || command === 'approve')
      .map(([code, against]) => [code, against] as const),
    facts,
  )
}

function first<Facts>(checks: readonly Check<Facts>[], facts: Facts): Refusal | null {
  for (const [code, against] of checks) {
    const detail = against(facts)
    if (detail !== null) return { code, detail }
  }
  return null
}

const unless = (fine: boolean, detail: string): string | null => (fine ? null : detail)

/** Every signature of a message must be good: one that is not means that somebody changed it on its way. */
function eachSignature({ signed }: ApprovalRequest, against: (signature: Signature) => string | null): string | null {
  for (const signature of signed?.signatures ?? []) {
    const detail = against(signature)
    if (detail !== null) return detail
  }
  return null
}

const allows = (limit: readonly string[] | null | undefined, value: string | undefined): boolean =>
  limit === null || limit === undefined || (value !== undefined && limit.includes(value))

function wrongAudience({ request, addresses }: MessageFacts): string | null {
  if (request.audience === null) return null
  const asked = request.audience.map((one) => one.toLowerCase())
  const ours = asked.filter((one) => addresses.includes(one))
  if (ours.length === 0) return `it is for ${list(request.audience)}, this VM answers to ${list(addresses)}`
  return eachSignature(request, ({ key, kid }) => {
    const allowed = key?.audiences?.map((one) => one.toLowerCase())
    return unless(allowed === undefined || ours.some((one) => allowed.includes(one)), `the key ${show(kid)} does not reach ${list(ours)}`)
  })
}

function notYetValid({ request: { validity }, now }: MessageFacts): string | null {
  const from = Math.max(validity.issuedAt ?? 0, validity.notBefore ?? 0)
  return unless(from <= now + skewMs, `it is valid from ${time(from)}, here it is ${time(now)}: check the clocks`)
}

function expired({ request: { validity, signed }, now }: MessageFacts): string | null {
  if (validity.expiresAt === null) return null
  // Clocks of signers may differ from ours; whoever writes `expiresAt` into an unsigned message said exactly that.
  const until = validity.expiresAt + (signed === null ? 0 : skewMs)
  return unless(now < until, `it was valid until ${time(validity.expiresAt)}, here it is ${time(now)}`)
}

function lifetimeTooLong({ request: { validity, signed } }: MessageFacts): string | null {
  if (signed === null || validity.expiresAt === null || validity.issuedAt === null) return null
  const lifetime = validity.expiresAt - validity.issuedAt
  return unless(lifetime <= maxLifetimeMs, `expected exp at most ${maxLifetimeMs / 1000} s after iat, got ${lifetime / 1000} s`)
}

function notVisible({ event, wanted }: EventFacts): string | null {
  if (event === null) return `IMDS shows no event ${wanted.eventId} to this VM`
  const status = statusName(event.eventStatus)
  return unless(status === 'scheduled' || status === 'started', `the event is ${event.eventStatus}, there is nothing left to approve`)
}

function notThisVm({ event, rules, vmName }: EventFacts): string | null {
  if (event === null) return null
  // Azure wants each machine to approve its own deletion, whatever the configuration says.
  const terminate = event.eventType.toLowerCase() === 'terminate'
  if (rules.events === 'any' && !terminate) return null
  const why = terminate ? 'a machine approves only its own Terminate' : 'approvals.events is own'
  return unless(
    namesThisVm(event.resources, vmName) === true,
    `${why}: it hits ${list(event.resources)}, this VM is ${vmName ?? 'unknown'}`,
  )
}

function typeNotPermitted({ event, rules, signatures }: EventFacts): string | null {
  if (event === null) return null
  const within = (types: readonly string[]): boolean => types.some((type) => type.toLowerCase() === event.eventType.toLowerCase())
  if (!within(rules.eventTypes)) return `approvals.eventTypes has ${list(rules.eventTypes)}, this is a ${event.eventType}`
  const strict = signatures.find(({ key }) => key !== null && key.eventTypes !== null && !within(key.eventTypes))
  return strict === undefined ? null : `the key ${show(strict.kid)} may not approve a ${event.eventType}`
}

function quorumNotMet({ signatures, quorum }: EventFacts): string | null {
  const keys = new Set(signatures.map(({ key }) => key?.thumbprint)).size
  const subjects = new Set(signatures.map(({ subject }) => subject)).size
  return unless(
    quorum === 0 || Math.min(keys, subjects) >= quorum,
    `expected signatures of ${quorum} people with ${quorum} keys, got ${subjects} with ${keys}`,
  )
}

const folded = (names: readonly string[]): Set<string> => new Set(names.map((name) => name.replace(/^_/, '').toLowerCase()))

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return folded(left).symmetricDifference(folded(right)).size === 0
}

const time = (at: number): string => (Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : String(at))

/** Whatever somebody sent, short and printable. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => (name.length > 200 ? `${name.slice(0, 199)}…` : name))
  return shown.length === 0 ? 'nobody' : `${shown.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
}
