/** What the endpoint says to one request, or how the connection ends without a word. */
export type Answer =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }
  | { readonly noAnswer: 'reset' | 'hang' }

export function jsonAnswer(status: number, body: unknown): Answer {
  return bytesAnswer(status, Buffer.from(JSON.stringify(body)), 'application/json; charset=utf-8')
}

export function textAnswer(status: number, body: string): Answer {
  return bytesAnswer(status, Buffer.from(body), 'text/plain; charset=utf-8')
}

export function bytesAnswer(status: number, body: Buffer, contentType: string): Answer {
  return { status, headers: { 'Content-Type': contentType }, body }
}
