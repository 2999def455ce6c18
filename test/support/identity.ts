import type { Identity } from '../../src/events/identity.ts'

/** Instance 0 of a uniform scale set. */
export const web0: Identity = {
  vmName: 'web_0',
  vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
  resourceId: '/subscriptions/0/resourceGroups/ops/providers/Microsoft.Compute/virtualMachineScaleSets/web/virtualMachines/0',
  scaleSetId: '/subscriptions/0/resourceGroups/ops/providers/Microsoft.Compute/virtualMachineScaleSets/web',
  source: null,
  location: 'westeurope',
  zone: '1',
  faultDomain: '0',
  updateDomain: '0',
  scaleSet: 'web',
  tags: {},
}
