import { createImdsClient, type ImdsClient, type ImdsClientOptions } from '../../src/imds/client.ts'

/** A client that is closed at the end of the scope. */
export function openClient(endpoint: string, options: Partial<ImdsClientOptions> = {}): ImdsClient & AsyncDisposable {
  const client = createImdsClient({ endpoint, apiVersion: '2020-07-01', agent: 'foreshock/test', ...options })
  return { ...client, [Symbol.asyncDispose]: () => client.close() }
}
