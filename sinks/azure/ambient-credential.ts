import type { TokenCredential } from '@azure/identity'
import { keepMetadataDirect } from './metadata-direct.ts'

/**
 * The credential where the configuration names none: what the environment has (AZURE_CLIENT_ID and the like), a federated token, the identity of
 * this VM, in this order. Retries are off: the outbox has a schedule of its own.
 */
export async function ambientCredential(env: NodeJS.ProcessEnv): Promise<TokenCredential> {
  keepMetadataDirect(env)
  const { ChainedTokenCredential, EnvironmentCredential, ManagedIdentityCredential, WorkloadIdentityCredential } =
    await import('@azure/identity')
  const options = { retryOptions: { maxRetries: 0 }, disableInstanceDiscovery: (env['AZURE_AUTHORITY_HOST'] ?? '') !== '' }
  const federated = env['AZURE_FEDERATED_TOKEN_FILE'] === undefined ? [] : [new WorkloadIdentityCredential(options)]
  return new ChainedTokenCredential(new EnvironmentCredential(options), ...federated, new ManagedIdentityCredential(options))
}
