import { createTransport } from './transport.ts'

const timeoutMs = 5_000

/**
 * The Date header of IMDS, which is the clock of the host; null where none comes within 5 s: why is told by the look at IMDS itself.
 * Asks for the list of versions, which answers at once.
 */
export async function hostDate(origin: string, agent: string): Promise<string | null> {
  const transport = createTransport({ origin, agent, connectMs: timeoutMs, bodyMs: timeoutMs })
  try {
    const answer = await transport.send({ method: 'GET', path: '/metadata/versions' }, { timeoutMs })
    return answer.kind === 'answer' ? (answer.date ?? null) : null
  } finally {
    await transport.close()
  }
}
