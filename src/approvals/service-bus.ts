import type { ServiceBusClient } from '@azure/service-bus'
import { credentialOf } from '../../sinks/azure/credential.ts'
import { readSecret } from '../../sinks/secret.ts'
import type { ControlConfig } from '../config/approvals.ts'

/** One operation, such as a settlement. The SDK would try four times, 30 s apart, before it says a word; who calls has a schedule of its own. */
const retryOptions = { maxRetries: 0, timeoutInMs: 10_000 }

/** A client for the namespace of the control queue; the SDK is loaded only now. Connects at its first use. */
export async function openServiceBus({ namespace, auth }: Pick<ControlConfig, 'namespace' | 'auth'>): Promise<ServiceBusClient> {
  const { ServiceBusClient: Client } = await import('@azure/service-bus')
  if (auth.type !== 'connection-string') return new Client(namespace ?? '', await credentialOf(auth), { retryOptions })
  return new Client(await readSecret(auth.connectionString), { retryOptions })
}

/** What the SDK threw, in a line: several attempts end as an AggregateError that says nothing itself. */
export function problemOf(error: unknown): string {
  const parts: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'errors') : undefined
  if (Array.isArray(parts) && parts.length > 0) return problemOf(parts.at(-1))
  if (!(error instanceof Error)) return String(error)
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' && !error.message.includes(code) ? `${code}: ${error.message}` : error.message
}
