import type { Identity } from '../events/identity.ts'
import type { ImdsClient } from './client.ts'
import { readInstancePatiently } from './instance.ts'

/** At a boot the network and the host may be late. */
const maxWaitMs = 8_000

/** Reads who this VM is. Of its tags only the allowed ones are let in: tags can hold secrets. Rejects only with the reason of `signal`. */
export async function readVm(
  client: Pick<ImdsClient, 'getJson'>,
  allowedTags: readonly string[],
  signal: AbortSignal,
): Promise<{ ok: true; identity: Identity } | { ok: false; detail: string }> {
  const result = await readInstancePatiently(client, { signal, maxWaitMs, firstWaitMs: 250 })
  if (result.kind === 'failure') return { ok: false, detail: result.detail }
  const { vmName, vmId, resourceId, scaleSetId, location, zone, faultDomain, updateDomain, scaleSet, tags } = result.instance
  return {
    ok: true,
    identity: {
      vmName,
      vmId,
      resourceId,
      scaleSetId,
      source: null,
      location,
      zone,
      faultDomain,
      updateDomain,
      scaleSet,
      tags: onlyAllowed(tags, allowedTags),
    },
  }
}

/** Tags by their names in any case. */
export function onlyAllowed(tags: Readonly<Record<string, string>>, allowed: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).filter(([name]) => allowed.some((wanted) => wanted.toLowerCase() === name.toLowerCase())))
}
