import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { textAnswer, type Answer } from './answer.ts'
import { spoil } from './faults.ts'
import type { Fault, HandFault } from './scenario-fault.ts'

const largestBody = 65_536

/** The body as text; 413 beyond 64 KiB; null: the client went away. */
export function readBody(request: IncomingMessage): Promise<string | Answer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= largestBody) chunks.push(chunk)
      else resolve(textAnswer(413, `Body too large: expected at most ${largestBody} bytes`))
    })
    request.once('end', () => resolve(Buffer.concat(chunks).toString()))
    request.once('error', () => resolve(null))
  })
}

/** Writes an answer, with what a fault does to it on the wire. Resolves early when `signal` aborts. */
export async function respond(
  response: ServerResponse,
  answer: Answer,
  fault: Fault | HandFault | null,
  signal: AbortSignal,
): Promise<void> {
  if (fault?.kind === 'delay' && !(await waited(fault.delayMs, signal))) return
  const spoilt = spoil(answer, fault)
  if ('noAnswer' in spoilt) {
    if (spoilt.noAnswer === 'reset') response.socket?.resetAndDestroy()
    return
  }
  const { status, headers, body } = spoilt
  response.writeHead(status, { ...headers, ...(status === 413 && { Connection: 'close' }), 'Content-Length': body.length })
  if (fault?.kind !== 'truncate') {
    response.end(body)
    return
  }
  response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.socket?.destroy())
}

async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch((error: unknown) => {
    if (signal.aborted) return false
    throw error
  })
}
