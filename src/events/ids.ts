import type { Transition } from '../lifecycle/model.ts'
import { sha256 } from './digest.ts'

const maxId = 128
/** A GUID has 36. */
const maxPart = 40

/**
 * The id of the event that tells a transition: nothing but what the event says goes into it, so a redelivery, a restart, a lost state file and
 * every VM of the group come to the same one. `vmId` is given in scope `vm`.
 */
export function transitionId(transition: Transition, vmId: string | null): string {
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

/** What keeps the life of one event in order. Brokers take partition keys of at most 128 characters. */
export const partitionKey = (key: string): string => (key.length <= maxId ? key : shortened(key))

/** An id that is no GUID may be of any length. */
const shortened = (part: string): string => (part.length <= maxPart ? part : `sha256-${sha256(part).slice(0, 32)}`)

/** Only generations and repeats beyond any real number come this far; they stay distinct. */
const bounded = (id: string): string => (id.length <= maxId ? id : `sha256-${sha256(id)}`)
