import type { Identity } from './identity.ts'
import type { ForwarderData } from './schemas.ts'

/** The VM that reports, as it stands in `data.vm`. */
export function vmData(identity: Identity): ForwarderData['vm'] {
  const { vmName, vmId, location, zone, faultDomain, updateDomain, scaleSet, tags } = identity
  return { name: vmName, vmId, location, zone, faultDomain, updateDomain, scaleSet, tags: { ...tags } }
}
