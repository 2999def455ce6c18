import { readdir, readFile, stat } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { join } from 'node:path'
import { option245, type LeaseFormat } from './lease.ts'

const wellKnown = '169.254.169.254'

export interface Discovered {
  readonly ok: true
  /** Origin, port 80. */
  readonly endpoint: string
  /** Where the address came from, for people: `SCHEDULEDEVENTSIP`, `the well-known address`, a lease file. */
  readonly from: string
}

export interface NotDiscovered {
  readonly ok: false
  /** One line for people: what was looked at, and what to do. */
  readonly detail: string
  readonly looked: readonly string[]
}

export interface DiscoveryOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether IMDS answers at this origin. */
  readonly answers: (origin: string) => Promise<boolean>
  /** Stands before every path; `/` but in tests. */
  readonly root?: string
}

/** Where the DHCP clients keep their leases. `dhclient` also runs under NetworkManager. */
const places: readonly { readonly format: LeaseFormat; readonly folder: string; readonly file: RegExp }[] = [
  { format: 'systemd-networkd', folder: 'run/systemd/netif/leases', file: /^\d+$/ },
  { format: 'network-manager', folder: 'var/lib/NetworkManager', file: /^internal-.*\.lease$/ },
  { format: 'dhclient', folder: 'var/lib/NetworkManager', file: /^dhclient-.*\.lease$/ },
  { format: 'dhclient', folder: 'var/lib/dhcp', file: /\.leases?$/ },
  { format: 'dhclient', folder: 'var/lib/dhclient', file: /\.leases?$/ },
]

/**
 * Finds the endpoint of a VM that may stand outside a virtual network (classic VMs, cloud services). In this order:
 *
 * 1. `SCHEDULEDEVENTSIP`, set by Microsoft's own discovery script. Not an IPv4 address: an error, not a reason to look further.
 * 2. 169.254.169.254, where it answers. It goes before the leases, for DHCP hands out option 245 inside virtual networks too: there it names
 *    the platform's 168.63.129.16, so finding it proves nothing.
 * 3. DHCP option 245 from the lease files; of several that have it the one that was written last.
 */
export async function discoverEndpoint({ env, answers, root = '/' }: DiscoveryOptions): Promise<Discovered | NotDiscovered> {
  const named = env['SCHEDULEDEVENTSIP']?.trim()
  if (named !== undefined && named !== '') {
    return isIPv4(named)
      ? { ok: true, endpoint: `http://${named}`, from: 'SCHEDULEDEVENTSIP' }
      : notFound(['SCHEDULEDEVENTSIP'], `SCHEDULEDEVENTSIP: expected an IPv4 address, got ${JSON.stringify(named)}; correct or unset it`)
  }
  if (await answers(`http://${wellKnown}`)) return { ok: true, endpoint: `http://${wellKnown}`, from: 'the well-known address' }

  const leases = await leaseFiles(root)
  const closed: string[] = []
  for (const { path, format } of leases) {
    const content = await unlessAbsent(readFile(path, 'utf8'))
    if (content === undefined) closed.push(path)
    const address = option245(format, content ?? '')
    if (address !== undefined) return { ok: true, endpoint: `http://${address}`, from: `DHCP option 245 in ${path} (${format})` }
  }
  const looked = ['SCHEDULEDEVENTSIP', wellKnown, ...leases.map(({ path }) => path)]
  return notFound(
    looked,
    `no Scheduled Events endpoint: SCHEDULEDEVENTSIP is not set, ${wellKnown} does not answer, ${told(leases.length, closed)}; set imds.endpoint or SCHEDULEDEVENTSIP`,
  )
}

function told(leases: number, closed: readonly string[]): string {
  if (leases === 0) return 'no lease file was found'
  const named = `${leases} lease file(s) name no option 245`
  return closed.length === 0 ? named : `${named}, of which this user cannot read ${closed.join(', ')}`
}

function notFound(looked: readonly string[], detail: string): NotDiscovered {
  return { ok: false, looked, detail }
}

/** The lease files, last written first. */
async function leaseFiles(root: string): Promise<{ readonly path: string; readonly format: LeaseFormat }[]> {
  const found: { path: string; format: LeaseFormat; writtenMs: number }[] = []
  for (const { format, folder, file } of places) {
    const names = (await unlessAbsent(readdir(join(root, folder)))) ?? []
    for (const name of names.toSorted()) {
      if (!file.test(name)) continue
      const path = join(root, folder, name)
      const info = await unlessAbsent(stat(path))
      if (info?.isFile() === true) found.push({ path, format, writtenMs: info.mtimeMs })
    }
  }
  return found.toSorted((one, other) => other.writtenMs - one.writtenMs)
}

/** A DHCP client that is not there has no folder; one of another user may hide its own, or its files; and a lease may go meanwhile. */
async function unlessAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Error && 'code' in error && absent.has(error.code)) return undefined
    throw error
  }
}

const absent = new Set<unknown>(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'])
