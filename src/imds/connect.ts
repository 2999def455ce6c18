import type { ApiVersion } from './api-versions.ts'
import { createImdsClient, type ImdsClient } from './client.ts'
import { failure, type Failure } from './failure.ts'
import { findEndpoint } from './find-endpoint.ts'

export interface ConnectOptions {
  /** An origin, or `discover`. */
  readonly endpoint: string
  readonly apiVersion: ApiVersion
  readonly agent: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told once, when an endpoint was discovered. */
  readonly onDiscovered?: (endpoint: string, from: string) => void
}

/**
 * A client for the configured endpoint. `discover` looks at the first request and, until something is found, at each further one: at a boot the
 * lease may come later than this program. What is not found is a failure like any other.
 */
export function connectImds({ endpoint, apiVersion, agent, env, onDiscovered }: ConnectOptions): ImdsClient {
  if (endpoint !== 'discover') return createImdsClient({ endpoint, apiVersion, agent })

  let client: ImdsClient | undefined
  let closed = false
  const connected = async (signal: AbortSignal | undefined): Promise<ImdsClient | Failure> => {
    if (closed) return failure('closed', 'the client was closed')
    if (client !== undefined) return client
    const found = await findEndpoint({ env, agent, signal })
    if (!found.ok) return failure('unroutable', found.detail)
    if (client === undefined) onDiscovered?.(found.endpoint, found.from)
    client ??= createImdsClient({ endpoint: found.endpoint, apiVersion, agent })
    return client
  }

  return {
    async getEvents(options) {
      const imds = await connected(options?.signal)
      return 'kind' in imds ? imds : await imds.getEvents(options)
    },
    async startRequests(request, options) {
      const imds = await connected(options?.signal)
      return 'kind' in imds ? { kind: 'uncertain', detail: imds.detail } : await imds.startRequests(request, options)
    },
    async getJson(path, options) {
      const imds = await connected(options?.signal)
      return 'kind' in imds ? imds : await imds.getJson(path, options)
    },
    async close() {
      closed = true
      await client?.close()
    },
  }
}
