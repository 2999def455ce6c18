import { createImdsClient } from './client.ts'
import { defaultApiVersion } from './api-versions.ts'

/**
 * Whether IMDS answers at this origin, within 3 s. Asks for the list of versions: unlike Scheduled Events, which may take two minutes to
 * wake up, it answers at once, and unlike an open port it tells IMDS from the metadata service of another cloud.
 */
export async function answersAsImds(
  origin: string,
  options: { readonly agent: string; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const client = createImdsClient({ endpoint: origin, apiVersion: defaultApiVersion, agent: options.agent, timeouts: { connectMs: 2_000 } })
  try {
    const result = await client.getJson('/metadata/versions', { timeoutMs: 3_000, signal: options.signal })
    if (result.kind === 'json') return true
    // Busy or failing, but there.
    return result.status === 410 || result.status === 429 || (result.status ?? 0) >= 500
  } finally {
    await client.close()
  }
}
