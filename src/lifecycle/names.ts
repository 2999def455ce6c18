/** API version 2017-03-01 writes `_web_1` for `web_1`; the case of names varies between documents. */
const folded = (name: string): string => name.replace(/^_/, '').toLowerCase()

/** Whether Resources names this VM, by whole name: `web_1` is not `web_10`. null where the name is unknown or Resources is empty. */
export function namesThisVm(resources: readonly string[], vmName: string | null): boolean | null {
  if (vmName === null || resources.length === 0) return null
  return resources.some((resource) => folded(resource) === folded(vmName))
}

/**
 * Whether this VM is the first of Resources. They are sorted when read, so all VMs that see the event agree on one of them.
 * null where the name is unknown or Resources is empty.
 */
export function isFirstResource(resources: readonly string[], vmName: string | null): boolean | null {
  const [first] = resources
  return first === undefined || vmName === null ? null : folded(first) === folded(vmName)
}
