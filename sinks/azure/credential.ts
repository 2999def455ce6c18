import { once } from 'node:events'
import { connect } from 'node:net'
import type { TokenCredential } from '@azure/identity'
import { ForeshockError } from '../error.ts'
import { readSecret } from '../secret.ts'
import type { TokenAuth } from './auth.ts'
import { keepMetadataDirect } from './metadata-direct.ts'
import { tokenError } from './token.ts'

const renewBeforeMs = 120_000
const leastPauseMs = 2_000

/** How long the endpoint of a managed identity, which is on this machine, may take to accept a connection. */
const reachMs = 2_000

/**
 * The credential for `auth`, from @azure/identity, which caches its tokens. A client secret that stands in a file is read anew for each token, and
 * an authority that the operator names (AZURE_AUTHORITY_HOST) is not looked up in the public cloud's list of authorities. Retries are off: the
 * outbox, and the link, have a schedule of their own.
 */
export async function credentialOf(auth: TokenAuth): Promise<TokenCredential> {
  const { env } = process
  keepMetadataDirect(env)
  const { ManagedIdentityCredential, WorkloadIdentityCredential, ClientSecretCredential } = await import('@azure/identity')
  const options = { retryOptions: { maxRetries: 0 }, disableInstanceDiscovery: (env['AZURE_AUTHORITY_HOST'] ?? '') !== '' }
  if (auth.type === 'workload-identity') return new WorkloadIdentityCredential(options)
  if (auth.type === 'managed-identity') {
    const inner = new ManagedIdentityCredential({ ...options, ...(auth.clientId === undefined ? {} : { clientId: auth.clientId }) })
    return {
      async getToken(scopes, given) {
        await reachable(identityEndpoint(env))
        return await inner.getToken(scopes, given)
      },
    }
  }
  let current: { readonly secret: string; readonly credential: TokenCredential } | undefined
  return {
    async getToken(scopes, given) {
      const secret = await readSecret(auth.clientSecret)
      if (current?.secret !== secret) {
        current = { secret, credential: new ClientSecretCredential(auth.tenantId, auth.clientId, secret, options) }
      }
      return await current.credential.getToken(scopes, given)
    },
  }
}

/**
 * For the clients of AMQP: errors that say what to do, and no token with so little time left that their timer, which asks for the next one two
 * minutes before the end, would never pause.
 */
export function forLinks(inner: TokenCredential): TokenCredential {
  return {
    async getToken(scopes, given) {
      try {
        const token = await inner.getToken(scopes, given)
        if (token === null) return null
        return { ...token, expiresOnTimestamp: Math.max(token.expiresOnTimestamp, Date.now() + renewBeforeMs + leastPauseMs) }
      } catch (error) {
        throw tokenError(error, String(scopes))
      }
    },
  }
}

/** Where @azure/identity will ask, in its own order; IMDS of the VM where nothing else is set. */
function identityEndpoint(env: NodeJS.ProcessEnv): URL {
  const names = ['IDENTITY_ENDPOINT', 'MSI_ENDPOINT', 'AZURE_POD_IDENTITY_AUTHORITY_HOST']
  const set = names.map((name) => URL.parse(env[name] ?? '')).find((url) => url !== null)
  return set ?? new URL('http://169.254.169.254')
}

/**
 * Whether somebody listens there at all. Away from Azure, packets to IMDS vanish: the SDK would wait for minutes, could not be called back, and
 * would not say what it waited for.
 */
async function reachable({ hostname, port, protocol }: URL): Promise<void> {
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(reachMs) })
  } catch (cause) {
    throw new ForeshockError('unreachable', `no identity endpoint accepts connections at ${hostname}: is this an Azure VM?`, { cause })
  } finally {
    socket.on('error', () => {})
    socket.destroy()
  }
}
