import { errors, type Agent } from 'undici'

/** What came of one GET, failures included. */
export type Heard =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }
  | { readonly noAnswer: 'reset' | 'hang' }

/** One GET as IMDS wants it; the body is bounded by the agent. null: `signal` aborted. Throws what is not the network's fault. */
export async function ask(agent: Agent, url: string, options: { timeoutMs: number; signal: AbortSignal }): Promise<Heard | null> {
  const deadline = AbortSignal.timeout(options.timeoutMs)
  try {
    const signal = AbortSignal.any([options.signal, deadline])
    const { origin, pathname, search } = new URL(url)
    const { statusCode, headers, body } = await agent.request({
      origin,
      path: pathname + search,
      method: 'GET',
      headers: { metadata: 'true' },
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    })
    return { status: statusCode, headers: singleHeaders(headers), body: Buffer.from(await body.arrayBuffer()) }
  } catch (error) {
    if (options.signal.aborted) return null
    if (deadline.aborted || error instanceof errors.ConnectTimeoutError) return { noAnswer: 'hang' }
    if (isNetworkError(error)) return { noAnswer: 'reset' }
    throw error
  }
}

/** undici's own (a cut connection, an answer that is no HTTP, a body beyond the limit) and those of the operating system. */
function isNetworkError(error: unknown): boolean {
  if (error instanceof errors.InvalidArgumentError) return false
  if (error instanceof errors.UndiciError || error instanceof errors.HTTPParserError) return true
  return error instanceof Error && 'syscall' in error
}

function singleHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string') single[name] = value
  return single
}
