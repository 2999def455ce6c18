import type { TokenCredential } from '@azure/identity'
import { ForeshockError } from '../error.ts'

/** What @azure/identity and the pipeline below it call their errors. */
const known = /^(?:AuthenticationError|AuthenticationRequiredError|AggregateAuthenticationError|CredentialUnavailableError|RestError)$/

/** Codes of node:net and of the pipeline. */
const network = /^(?:E(?:CONN|HOST|NET)[A-Z]+|EAI_[A-Z]+|ETIMEDOUT|ENOTFOUND|EPIPE|REQUEST_SEND_ERROR)$/

/** How MSAL, which hides the codes of the network, and the managed identity begin their messages where nobody answered. */
const unanswered = /^(?:network_error|endpoints_resolution_error|openid_config_error)\b|: Network unreachable/

/** The text of a token for `scope`. Throws `sink_unusable` or `unreachable`; what the library throws once the signal has aborted, as it is. */
export async function tokenFor(credential: TokenCredential, scope: string, signal: AbortSignal): Promise<string> {
  try {
    const token = await credential.getToken(scope, { abortSignal: signal })
    if (token !== null) return token.token
  } catch (error) {
    if (signal.aborted) throw error
    throw tokenError(error, scope)
  }
  throw new ForeshockError('sink_unusable', `no token for ${scope}: check \`auth\``)
}

/**
 * What `getToken` threw, as ours: `unreachable` where it may pass by itself, else `sink_unusable`. Of the text only the number that Entra ID
 * gives to each reason is kept (AADSTS…): descriptions repeat ids and, from a broken stand-in, anything. An error that is none of the
 * library's is thrown again.
 */
export function tokenError(error: unknown, scope: string): ForeshockError {
  const chain = [...unfold(error)]
  if (!chain.some((one) => known.test(one.name))) throw error
  const passing = chain.some(isPassing)
  const number = chain.map((one) => /AADSTS\d+/.exec(one.message)?.[0]).find((found) => found !== undefined)
  const reason = number ?? chain.map((one) => textOf(one, 'code')).find((code) => network.test(code)) ?? chain[0]?.name
  const cure = passing
    ? 'check that Entra ID, or the metadata service, can be reached'
    : 'check `auth`, and that the identity exists and may do this'
  return new ForeshockError(passing ? 'unreachable' : 'sink_unusable', `no token for ${scope} (${reason}): ${cure}`, { cause: error })
}

/** The error, its causes, and the parts of an aggregate. */
function* unfold(error: unknown, depth = 0): Generator<Error> {
  if (!(error instanceof Error) || depth > 8) return
  yield error
  yield* unfold(error.cause, depth + 1)
  const parts: unknown = Reflect.get(error, 'errors')
  if (Array.isArray(parts)) for (const part of parts) yield* unfold(part, depth + 1)
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name)
  return typeof value === 'string' ? value : ''
}

function isPassing(error: Error): boolean {
  const statuses: unknown[] = [Reflect.get(error, 'statusCode'), Reflect.get(error, 'status')]
  const overloaded = statuses.some((status) => typeof status === 'number' && (status === 429 || status >= 500))
  return overloaded || network.test(textOf(error, 'code')) || unanswered.test(error.message)
}
