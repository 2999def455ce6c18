/** Why an approval was not relayed, in the order in which the gate asks. */
export const reasonCodes = [
  'too_large',
  'malformed',
  'bad_typ',
  'bad_alg',
  'unknown_key',
  'bad_signature',
  'issuer_not_allowed',
  'wrong_audience',
  'not_yet_valid',
  'expired',
  'lifetime_too_long',
  'replayed',
  'unsupported_command',
  'event_not_visible',
  'event_already_started',
  'state_changed',
  'resources_mismatch',
  'not_this_vm',
  'not_leader',
  'too_many_resources',
  'event_type_not_permitted',
  'held',
  'quorum_not_met',
  'rate_limited',
  'relay_failed',
] as const
export type ReasonCode = (typeof reasonCodes)[number]

/** `ok`: relayed. */
export type Code = 'ok' | ReasonCode

export const isCode = (text: string | null): text is Code => text === 'ok' || reasonCodes.some((code) => code === text)

/** A no of the gate, with one line for people. */
export interface Refusal {
  readonly code: ReasonCode
  readonly detail: string
}

/** Reasons that may pass: asking again later can help. */
const passing: ReadonlySet<Code> = new Set(['event_not_visible', 'rate_limited', 'relay_failed'])
export const mayPass = (code: Code): boolean => passing.has(code)

/** The last word of the type of the event that tells it. */
export function outcomeOf(code: Code): 'relayed' | 'refused' | 'failed' {
  if (code === 'ok') return 'relayed'
  return code === 'relay_failed' ? 'failed' : 'refused'
}

/**
 * Refusals of which nobody whom we trust has said a word yet, or not enough of them: they must not use up the id of the message, or whoever
 * may send could spoil a good one by sending a broken copy first.
 */
const unproven: ReadonlySet<Code> = new Set([
  'too_large',
  'malformed',
  'bad_typ',
  'bad_alg',
  'unknown_key',
  'bad_signature',
  'quorum_not_met',
])
export const provesId = (code: Code): boolean => !unproven.has(code)
