import type { Transition } from '../lifecycle/model.ts'
import { isFirstResource, namesThisVm } from '../lifecycle/names.ts'

/** `publish` of the configuration. */
export type PublishMode = 'all' | 'own' | 'leader'

/**
 * Whether this VM publishes a transition. Not knowing (no VM name, no Resources) is no reason for silence: the ids make the copies one.
 * A change of Resources concerns whoever stood there before as well.
 */
export function publishes(mode: PublishMode, transition: Transition, vmName: string | null): boolean {
  const concerns = { all: () => true, own: namesThisVm, leader: isFirstResource }[mode]
  return [transition.event.resources, ...resourcesBefore(transition)].some((resources) => concerns(resources, vmName) !== false)
}

function resourcesBefore(transition: Transition): (readonly string[])[] {
  if (transition.kind === 'end') return []
  return transition.changes.flatMap(({ field, from }) => (field === 'resources' && typeof from === 'object' && from !== null ? [from] : []))
}
