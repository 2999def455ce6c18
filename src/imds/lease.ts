import { isIPv4 } from 'node:net'

/**
 * How a DHCP client notes option 245 (four bytes, an IPv4 address) in its lease file. Each reader gives the address of the last lease that
 * has the option: dhclient appends, so its last is the current one.
 *
 * dhclient knows the option only by its number and writes the bytes in hex without leading zeros (`a8:3f:81:10`), or, when all four are
 * printable characters, as a quoted string.
 * systemd-networkd and NetworkManager's internal client write `OPTION_245=a83f8110`.
 */
export type LeaseFormat = 'dhclient' | 'systemd-networkd' | 'network-manager'

/** The address that option 245 of a lease file names, undefined where there is none. */
export function option245(format: LeaseFormat, content: string): string | undefined {
  const pattern =
    format === 'dhclient' ? /^[ \t]*option[ \t]+unknown-245[ \t]+(.+?)[ \t]*;[ \t]*\r?$/gm : /^OPTION_245=([0-9a-f]{8})\r?$/gim
  let address: string | undefined
  for (const [, value = ''] of content.matchAll(pattern)) address = toAddress(bytesOf(value)) ?? address
  return address
}

function bytesOf(value: string): number[] {
  if (/^[0-9a-f]{8}$/i.test(value)) return [...Buffer.from(value, 'hex')]
  if (/^[0-9a-f]{1,2}(:[0-9a-f]{1,2}){3}$/i.test(value)) return value.split(':').map((byte) => Number.parseInt(byte, 16))
  const quoted = /^"(.*)"$/.exec(value)?.[1]
  if (quoted === undefined) return []
  const plain = quoted.replace(/\\([0-7]{3}|.)/g, (_, escaped: string) =>
    escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped,
  )
  return [...Buffer.from(plain, 'latin1')]
}

/** An address that a host can have: not "this network", loopback, multicast or broadcast. */
function toAddress(bytes: readonly number[]): string | undefined {
  const address = bytes.join('.')
  const [first = 0] = bytes
  return isIPv4(address) && first !== 0 && first !== 127 && first < 224 ? address : undefined
}
