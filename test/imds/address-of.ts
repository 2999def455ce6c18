import assert from 'node:assert/strict'
import type { AddressInfo, Server } from 'node:net'

/** Where a TCP server listens. */
export function addressOf(server: Server): AddressInfo {
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object', 'the server listens on TCP')
  return address
}
