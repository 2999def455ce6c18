import { sha256 } from '../lifecycle/digest.ts'
import type { EndTransition, StateTransition } from '../lifecycle/model.ts'

const maxId = 128
/** A GUID has 36. */
const maxPart = 40

/** What of a transition goes into the id of its event. */
type Told =
  | Pick<StateTransition, 'kind' | 'key' | 'generation' | 'status' | 'digest16' | 'repeat'>
  | Pick<EndTransition, 'kind' | 'key' | 'generation'>

/**
 * The id of the event that tells a transition: nothing but what the event says goes into it, so a redelivery, a restart, a lost state file and
 * every VM of the group come to the same one. `vmId` is given in scope `vm`.
 */
export function transitionId(transition: Told, vmId: string | null): string {
  const { key, generation } = transition
  const parts = [shortened(key)]
  if (transition.kind === 'end') parts.push('ended')
  else parts.push(transition.status, transition.digest16)
  if (generation > 1) parts.push(`g${generation}`)
  if (transition.kind === 'state' && transition.repeat > 1) parts.push(`r${transition.repeat}`)
  return bounded(`${parts.join(':')}${vmId === null ? '' : `@${shortened(vmId)}`}`)
}

/** The id of an event about the forwarder: unique by moment and machine. `observer` is the vmId or name. */
export const forwarderId = (kind: string, time: string, observer: string): string => bounded(`${kind}:${time}@${shortened(observer)}`)

/**
 * The id of the event that tells what came of an approval: one for each request, event that it asks for and machine that decided, however often it
 * was delivered. `request` identifies the request on this machine.
 */
export const approvalId = (key: string | null, request: string, observer: string): string =>
  bounded(`${key === null ? 'none' : shortened(key)}:approval:${sha256(request).slice(0, 16)}@${shortened(observer)}`)

/** What keeps the life of one event in order. Brokers take partition keys of at most 128 characters. */
export const partitionKey = (key: string): string => (key.length <= maxId ? key : shortened(key))

/** An id that is no GUID may be of any length. */
const shortened = (part: string): string => (part.length <= maxPart ? part : `sha256-${sha256(part).slice(0, 32)}`)

/** Only generations and repeats beyond any real number come this far; they stay distinct. */
const bounded = (id: string): string => (id.length <= maxId ? id : `sha256-${sha256(id)}`)
