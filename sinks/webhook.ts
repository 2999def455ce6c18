import { z } from 'zod'
import type { CloudEvent } from './cloud-event.ts'
import { defineSink, type CheckResult, type DeliveryOutcome, type Sink, type SinkContext } from './contract.ts'
import { httpBinary } from './encodings/http-binary.ts'
import { structuredContentType, structuredJson } from './encodings/structured.ts'
import { ForeshockError } from './error.ts'
import { interrupted, untilAborted } from './interrupted.ts'
import { classifyAnswer, type Answer } from './webhook/answer.ts'
import { classifyFailure } from './webhook/failure.ts'
import { headersSchema, readHeaders } from './webhook/headers.ts'
import { guardedLookup, hostnameOf, schemeProblem, urlProblem } from './webhook/target.ts'

const options = z
  .strictObject({
    url: z
      .string()
      .superRefine((url, context) => {
        const message = urlProblem(url)
        if (message !== undefined) context.addIssue({ code: 'custom', message })
      })
      .describe('Where each event is sent by POST; https, or http to this machine. Link-local and platform addresses are refused.'),
    mode: z
      .enum(['structured', 'binary'])
      .default('structured')
      .describe('The whole event as one JSON body, or the data as the body and the attributes as `ce-` headers.'),
    headers: headersSchema.default({}).describe('Headers to add; each value a text or `{ file: … }`, read anew at each request.'),
    allowHttp: z.boolean().default(false).describe('Allows plain http to other machines.'),
  })
  .superRefine(({ url, allowHttp }, context) => {
    const message = schemeProblem(url, allowHttp)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['url'], message })
  })

type WebhookOptions = z.output<typeof options>

interface Request {
  readonly headers: Record<string, string>
  readonly body: string
}

/** How much of a response body is read, and for how long, to keep the connection for the next event. */
const drainBytes = 16 * 1024
const drainMs = 1000

export default defineSink({
  type: 'webhook',
  summary: 'One HTTP POST per event',
  options,
  defaults: { maxAgeSeconds: 24 * 60 * 60 },
  open: openWebhook,
})

async function openWebhook(given: WebhookOptions, context: SinkContext): Promise<Sink> {
  const problem = urlProblem(given.url) ?? schemeProblem(given.url, given.allowHttp)
  if (problem !== undefined) throw new ForeshockError('sink_unusable', `sink ${context.name}: url: ${problem}`)
  const target = new URL(given.url)
  const { Agent, buildConnector } = await import('undici')

  const closing = new AbortController()
  const lookup = guardedLookup(target.protocol === 'http:' && !given.allowHttp)
  // One clock only, the `signal` of each delivery; connecting keeps undici's own limit because it goes on for the next request.
  const agent = new Agent({ allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect: { lookup, signal: closing.signal } })

  const send = async ({ headers, body }: Request, signal: AbortSignal): Promise<Answer> => {
    const response = await agent.request({
      origin: target.origin,
      path: target.pathname + target.search,
      method: 'POST',
      headers: { 'user-agent': context.agent, ...headers },
      body,
      signal,
    })
    await drain(response.body, signal)
    return {
      status: response.statusCode,
      retryAfter: first(response.headers['retry-after']),
      location: first(response.headers['location']),
    }
  }

  const connectOnce = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const connect = buildConnector({ lookup, allowH2: false, maxCachedSessions: 0, signal: AbortSignal.any([signal, closing.signal]) })
      const { protocol, host, port } = target
      connect({ hostname: hostnameOf(target), host, protocol, port }, (error, socket) => {
        if (error !== null) reject(error)
        else socket.once('close', () => resolve()).destroy()
      })
    })

  const attempt = async (event: CloudEvent, signal: AbortSignal): Promise<DeliveryOutcome> => {
    const encoded = encode(event, given.mode)
    try {
      const custom = await readHeaders(given.headers)
      const answer = await send({ headers: { ...custom, ...encoded.headers }, body: encoded.body }, signal)
      return classifyAnswer(answer, { target, now: context.now() })
    } catch (error) {
      if (signal.aborted) return interrupted(signal)
      const { because, code, detail } = classifyFailure(error, target)
      return { status: 'retry', because, code, detail }
    }
  }

  return {
    // undici notices the signal only once a connection stands, so a handshake that hangs has to be left behind here.
    deliver: (event, { signal }) => untilAborted(signal, () => attempt(event, signal)),
    async check({ signal }): Promise<CheckResult> {
      try {
        await readHeaders(given.headers)
        await connectOnce(signal)
        return { ok: true, detail: `${target.host} can be connected to${target.protocol === 'https:' ? ' and is verified' : ''}` }
      } catch (error) {
        if (signal.aborted) {
          return { ok: false, detail: `${target.host} did not answer within the time limit`, cure: 'check firewall, port and the receiver' }
        }
        const { detail, cure } = classifyFailure(error, target)
        return { ok: false, detail, cure }
      }
    },
    async close() {
      closing.abort()
      await agent.destroy()
    },
  }
}

function encode(event: CloudEvent, mode: WebhookOptions['mode']): Request {
  if (mode === 'binary') return httpBinary(event)
  return { headers: { 'content-type': structuredContentType }, body: structuredJson(event) }
}

/** Reads off the body within bounds; what is longer or slower costs the connection. The status is known, so nothing here can fail. */
async function drain(body: { dump(options: { limit: number; signal: AbortSignal }): Promise<void> }, signal: AbortSignal): Promise<void> {
  const slow = new AbortController()
  const timer = setTimeout(() => slow.abort(), drainMs)
  const bound = AbortSignal.any([signal, slow.signal])
  try {
    await body.dump({ limit: drainBytes, signal: bound })
  } catch (error) {
    if (!bound.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
