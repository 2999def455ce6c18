import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { ForeshockError } from '../error.ts'

/**
 * What the platform answers on, never a webhook's receiver: link-local addresses, IMDS among them, and Azure's WireServer. A configuration or a
 * name server that points there would turn the forwarder against the machine it runs on. IPv4-mapped forms are covered by the IPv4 rules, the
 * NAT64 and IPv4-compatible ones by rules of their own.
 *
 * Source: RFC 3927, RFC 4291, RFC 6052; https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
 */
const platform = new BlockList()
platform.addSubnet('169.254.0.0', 16, 'ipv4')
platform.addAddress('168.63.129.16', 'ipv4')
platform.addSubnet('fe80::', 10, 'ipv6')
platform.addSubnet('::a9fe:0', 112, 'ipv6')
platform.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6')
platform.addAddress('64:ff9b::a83f:8110', 'ipv6')

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

const platformProblem = 'link-local and platform addresses (such as 169.254.169.254) are never a target: use the address of the receiver'

/** The part of `dns.lookup` that is needed here. */
export type ResolveAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** What is wrong with a URL as a target, for people and without the URL itself, whose path and query may be secrets. */
export function urlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null) return 'expected an absolute URL such as https://ops.example/hook'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `expected an https URL, got ${url.protocol}//`
  if (url.username !== '' || url.password !== '') return 'expected a URL without user name and password: send credentials by `auth`'
  return isPlatformAddress(hostnameOf(url)) ? platformProblem : undefined
}

/** Plain http is for the machine itself, unless the operator says otherwise. */
export function schemeProblem(text: string, allowHttp: boolean): string | undefined {
  const url = URL.parse(text)
  if (url === null || url.protocol !== 'http:' || allowHttp) return undefined
  const host = hostnameOf(url)
  if (host === 'localhost' || isLoopback(host)) return undefined
  return 'expected https, got http to another machine: use https, or set `allowHttp: true` to send events in the clear'
}

/** The host without the brackets of an IPv6 address. */
export function hostnameOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/**
 * A lookup for `net.connect` that leaves out the addresses that must not be reached, so a host name cannot lead where the URL may not.
 * With `loopbackOnly` (http without `allowHttp`) nothing but this machine is left. Fails with `sink_unusable` when no address remains.
 */
export function guardedLookup(loopbackOnly: boolean, resolve: ResolveAll = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(error, [])
        return
      }
      const usable = addresses.filter(({ address }) => !isPlatformAddress(address) && (!loopbackOnly || isLoopback(address)))
      const first = usable[0]
      if (first === undefined) {
        const only = addresses.some(({ address }) => isPlatformAddress(address)) ? platformProblem : 'http is for loopback addresses alone'
        callback(new ForeshockError('sink_unusable', `no address of ${hostname} may be used: ${only}`), [])
      } else if (options.all === true) {
        callback(null, usable)
      } else {
        callback(null, first.address, first.family)
      }
    })
  }
}

function isPlatformAddress(host: string): boolean {
  return isListed(platform, host)
}

function isLoopback(host: string): boolean {
  return isListed(loopback, host)
}

/** Names are not listed; a zone (`fe80::1%eth0`) is not part of the address. */
function isListed(list: BlockList, host: string): boolean {
  const address = host.replace(/%.*$/, '')
  const family = isIP(address)
  return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
