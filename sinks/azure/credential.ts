import type { AccessToken, GetTokenOptions, TokenCredential } from '@azure/identity'
import { readSecret } from '../secret.ts'
import type { TokenAuth } from './auth.ts'

/** The outbox owns retry. */
const options = { retryOptions: { maxRetries: 0 } } as const

/**
 * The credential for `auth`, with @azure/identity loaded only now. Nothing is asked of anybody yet; `getToken` does that, and throws what the
 * library throws. A client secret that stands in a file is read anew for each token, so that it can be rotated.
 */
export async function credentialOf(auth: TokenAuth): Promise<TokenCredential> {
  keepMetadataDirect(process.env)
  const identity = await import('@azure/identity')
  if (auth.type === 'managed-identity') {
    return new identity.ManagedIdentityCredential({ ...options, ...(auth.clientId === undefined ? {} : { clientId: auth.clientId }) })
  }
  if (auth.type === 'workload-identity') return new identity.WorkloadIdentityCredential(options)
  return rotating(
    () => readSecret(auth.clientSecret),
    (secret) => new identity.ClientSecretCredential(auth.tenantId, auth.clientId, secret, options),
  )
}

/**
 * The credential where the configuration names none: what the environment has (AZURE_CLIENT_ID and the like), a federated token, the identity of
 * this VM, in this order.
 */
export async function ambientCredential(): Promise<TokenCredential> {
  keepMetadataDirect(process.env)
  const identity = await import('@azure/identity')
  const federated = process.env['AZURE_FEDERATED_TOKEN_FILE'] === undefined ? [] : [new identity.WorkloadIdentityCredential(options)]
  return new identity.ChainedTokenCredential(
    new identity.EnvironmentCredential(options),
    ...federated,
    new identity.ManagedIdentityCredential(options),
  )
}

/**
 * The SDKs send everything through the proxy that the environment names, requests to the metadata service of this machine too, which answers
 * nobody else; the one way to tell them is NO_PROXY, read when the first of their pipelines is made.
 *
 * Source: https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#proxies
 */
function keepMetadataDirect(env: NodeJS.ProcessEnv): void {
  const metadata = '169.254.169.254'
  const name = env['NO_PROXY'] === undefined && env['no_proxy'] !== undefined ? 'no_proxy' : 'NO_PROXY'
  const listed = env[name]?.split(',').map((entry) => entry.trim()) ?? []
  if (!listed.includes(metadata)) env[name] = [...listed.filter((entry) => entry !== ''), metadata].join(',')
}

/** Makes the credential anew when its secret has changed. */
function rotating(read: () => Promise<string>, make: (secret: string) => TokenCredential): TokenCredential {
  let current: { readonly secret: string; readonly credential: TokenCredential } | undefined
  return {
    async getToken(scopes: string | string[], given?: GetTokenOptions): Promise<AccessToken | null> {
      const secret = await read()
      if (current?.secret !== secret) current = { secret, credential: make(secret) }
      return current.credential.getToken(scopes, given)
    },
  }
}
