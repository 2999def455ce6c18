import type { CloudEvent, Json } from '../cloud-event.ts'

/** The VM that reports, as far as it is known; the fields of the forwarder's identity that formats need. */
export interface Reporter {
  readonly vmName: string | null
  readonly vmId: string | null
  /** ARM id. */
  readonly resourceId: string | null
  readonly location: string | null
  readonly zone: string | null
}

/**
 * Who reports an event: what the event says of it (`data.vm`, `azobserver`), else what this machine knows of itself. The two are the same
 * machine, for an event leaves through the forwarder that built it.
 */
export function reporterOf(event: CloudEvent, self: Reporter | null): Reporter {
  const vm = objectOf(event.data['vm'])
  const observer = textOf(event['azobserver'])
  return {
    vmName: textOf(vm['name']) ?? self?.vmName ?? (observer === null ? null : lastSegment(observer)),
    vmId: textOf(vm['vmId']) ?? self?.vmId ?? null,
    resourceId: observer?.startsWith('/') === true ? observer : (self?.resourceId ?? null),
    location: textOf(vm['location']) ?? self?.location ?? null,
    zone: textOf(vm['zone']) ?? self?.zone ?? null,
  }
}

/** An instance of a scale set is named by its number in its ARM id, and by both in `resources`. */
function lastSegment(id: string): string {
  const [, scaleSet, instance] = /\/virtualMachineScaleSets\/([^/]+)\/virtualMachines\/([^/]+)$/i.exec(id) ?? []
  return scaleSet === undefined || instance === undefined ? id.slice(id.lastIndexOf('/') + 1) : `${scaleSet}_${instance}`
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function objectOf(value: Json | undefined): { readonly [key: string]: Json | undefined } {
  return typeof value === 'object' && value !== null && !isList(value) ? value : {}
}

const isList = (value: object): value is readonly Json[] => Array.isArray(value)
