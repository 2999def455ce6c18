import { z } from 'zod'
import type { SinkLog } from '../sinks/contract.ts'
import type { Identity } from './events/identity.ts'
import { onlyAllowed } from './imds/vm.ts'
import type { RememberedState } from './lifecycle/model.ts'
import { emptyState, rememberedStateSchema } from './lifecycle/remembered.ts'
import type { Store } from './outbox/store.ts'

/** Keys of what is remembered in the store. */
export const stateKeys = { lifecycle: 'lifecycle', identity: 'identity', lastGoodPoll: 'last-good-poll' } as const

const text = z.string().nullable()
const identitySchema: z.ZodType<Identity> = z.object({
  vmName: text,
  vmId: text,
  resourceId: text,
  scaleSetId: text,
  source: text,
  location: text,
  zone: text,
  faultDomain: text,
  updateDomain: text,
  scaleSet: text,
  tags: z.record(z.string(), z.string()),
})

/**
 * What was remembered when this machine last ran. A value that cannot be read is as none: the same events are told again under the same ids,
 * so a copy too many is all that it costs.
 */
export function readRemembered(
  store: Pick<Store, 'readState'>,
  allowedTags: readonly string[],
  log: SinkLog,
): { lifecycle: RememberedState; identity: Identity | null } {
  const read = <T>(key: string, schema: z.ZodType<T>): T | undefined => {
    const value = store.readState(key)
    if (value === undefined || value === null) return undefined
    const parsed = schema.safeParse(value)
    if (!parsed.success) log.error({ key, problem: z.prettifyError(parsed.error) }, 'what was remembered cannot be read and is forgotten')
    return parsed.data
  }
  const lifecycle = read(stateKeys.lifecycle, rememberedStateSchema) ?? emptyState
  // Written alone while nothing else changes; never behind what the last change brought.
  const lastGoodPollAt = Math.max(lifecycle.lastGoodPollAt ?? 0, read(stateKeys.lastGoodPoll, z.number()) ?? 0)
  const identity = read(stateKeys.identity, identitySchema)
  return {
    lifecycle: lastGoodPollAt === 0 ? lifecycle : { ...lifecycle, lastGoodPollAt },
    // The allow-list may be another one by now.
    identity: identity === undefined ? null : { ...identity, tags: onlyAllowed(identity.tags, allowedTags) },
  }
}
