import { discoverEndpoint, type Discovered, type NotDiscovered } from './discovery.ts'
import { answersAsImds } from './probe.ts'

/** Discovers the endpoint on this very machine. Rejects with the reason of `signal`. */
export function findEndpoint(options: {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly agent: string
  readonly signal?: AbortSignal | undefined
}): Promise<Discovered | NotDiscovered> {
  const { env, agent, signal } = options
  return discoverEndpoint({ env, answers: (origin) => answersAsImds(origin, { agent, signal }) })
}
