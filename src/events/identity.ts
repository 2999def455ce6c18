/** What this machine knows of itself, from `/metadata/instance/compute` and the configuration. */
export interface Identity {
  readonly vmName: string | null
  readonly vmId: string | null
  /** ARM id of the VM. */
  readonly resourceId: string | null
  /** ARM id of its scale set. */
  readonly scaleSetId: string | null
  /** `identity.source` of the configuration: wins over both ids, in either scope. */
  readonly source: string | null
  readonly location: string | null
  readonly zone: string | null
  readonly faultDomain: string | null
  readonly updateDomain: string | null
  /** Name of the scale set. */
  readonly scaleSet: string | null
  /** Only those that the configuration allows: tags can hold secrets. */
  readonly tags: Readonly<Record<string, string>>
}

/** Whether events are about the group that shares one document, or about this VM alone. */
export type Scope = 'group' | 'vm'

/**
 * The CloudEvents source, lower-cased, as a URI reference: names of resource groups may hold letters outside ASCII, which are
 * percent-encoded. Every VM of a group comes to the same one in scope `group`.
 */
export function sourceOf(identity: Identity, scope: Scope): string {
  const group = scope === 'group' ? identity.scaleSetId : null
  const unidentified = `/unidentified/${identity.vmName ?? 'unknown'}`
  return uriReference((identity.source ?? group ?? identity.resourceId ?? unidentified).trim().toLowerCase())
}

/** Whoever reports: the VM's ARM id as given, else its name. null where neither is known. */
export const observerOf = ({ resourceId, vmName }: Identity): string | null => resourceId ?? vmName

/** Encodes what a URI cannot hold and leaves alone what is encoded already. */
const uriReference = (text: string): string =>
  encodeURI(text.toWellFormed())
    .replaceAll(/%25([0-9a-f]{2})/gi, '%$1')
    .toLowerCase()
