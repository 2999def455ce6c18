import type { Scenario, Vm } from './scenario.ts'
import { stableId } from './stable-id.ts'

const subscriptionId = '00000000-0000-0000-0000-000000000000'
const resourceGroupName = 'foreshock-simulator'

/**
 * What `/metadata/instance` answers for a machine: the shape of the documentation's sample, every primitive a string, missing `""`.
 * A name `{set}_{n}` makes it an instance of the uniform scale set `{set}`, any other name a machine of its own.
 */
export function instanceMetadata(scenario: Scenario, vm: Vm): Record<string, unknown> {
  const position = scenario.vms.indexOf(vm)
  return { compute: merge(defaultCompute(scenario.name, vm.name, position), vm.compute), network: network(position) }
}

function defaultCompute(scenario: string, name: string, position: number): Record<string, unknown> {
  const [, set, index] = /^(.+)_(\d+)$/.exec(name) ?? []
  const compute = `/subscriptions/${subscriptionId}/resourceGroups/${resourceGroupName}/providers/Microsoft.Compute`
  const setId = set === undefined ? '' : `${compute}/virtualMachineScaleSets/${set}`
  return {
    azEnvironment: 'AzurePublicCloud',
    evictionPolicy: '',
    host: { id: '' },
    hostGroup: { id: '' },
    location: 'westeurope',
    name,
    osProfile: { computerName: set === undefined ? name : `${set}${base36(Number(index))}` },
    osType: 'Linux',
    physicalZone: 'westeurope-az1',
    placementGroupId: set === undefined ? '' : stableId(`${scenario} placement group ${set}`),
    platformFaultDomain: String(position % 5),
    platformSubFaultDomain: '',
    platformUpdateDomain: String(position % 5),
    priority: 'Regular',
    resourceGroupName,
    resourceId: set === undefined ? `${compute}/virtualMachines/${name}` : `${setId}/virtualMachines/${index}`,
    subscriptionId,
    tags: '',
    tagsList: [],
    virtualMachineScaleSet: { id: setId },
    vmId: stableId(`${scenario} vm ${name}`),
    vmScaleSetName: set ?? '',
    vmSize: 'Standard_D2s_v5',
    zone: '1',
  }
}

/** Uniform scale sets name their hosts in base 36: instance 85 is `…00002D`. */
const base36 = (index: number): string => index.toString(36).toUpperCase().padStart(6, '0')

function network(position: number): Record<string, unknown> {
  const ipAddress = [{ privateIpAddress: `10.0.0.${position + 4}`, publicIpAddress: '' }]
  const macAddress = `00224800${position.toString(16).toUpperCase().padStart(4, '0')}`
  return { interface: [{ ipv4: { ipAddress, subnet: [{ address: '10.0.0.0', prefix: '24' }] }, ipv6: { ipAddress: [] }, macAddress }] }
}

function merge(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const merged = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key]
    merged[key] = isObject(below) && isObject(value) ? merge(below, value) : value
  }
  return merged
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The part of the metadata at a path like `['compute', 'tagsList', '0', 'name']`; undefined: there is none. */
export function metadataAt(metadata: unknown, path: readonly string[]): unknown {
  let part = metadata
  for (const key of path) part = typeof part === 'object' && part !== null && Object.hasOwn(part, key) ? Reflect.get(part, key) : undefined
  return part
}

/** `format=text`: a leaf is its value, a branch the list of its keys, one a line, further branches with a slash. */
export function metadataText(part: unknown): string {
  if (typeof part !== 'object' || part === null) return String(part)
  return Object.entries(part)
    .map(([key, value]) => (typeof value === 'object' && value !== null ? `${key}/` : key))
    .join('\n')
}
