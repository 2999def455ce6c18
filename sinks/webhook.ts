import { z } from 'zod'
import type { CloudEvent } from './cloud-event.ts'
import { defineSink, type CheckResult, type DeliveryOutcome, type Sink, type SinkContext } from './contract.ts'
import { percentEncode } from './encodings/http-binary.ts'
import { ForeshockError } from './error.ts'
import { interrupted, untilAborted } from './interrupted.ts'
import { proxyFor } from './proxy.ts'
import { classifyAnswer } from './webhook/answer.ts'
import { authorizer, webhookAuthSchema } from './webhook/auth.ts'
import { clientTlsSchema, readClientTls } from './webhook/client-tls.ts'
import { askingOf, validateSchema } from './webhook/consent.ts'
import { encoder } from './webhook/encode.ts'
import { classifyFailure } from './webhook/failure.ts'
import { headersSchema, readHeaders } from './webhook/headers.ts'
import { permission } from './webhook/permission.ts'
import { signatureHeaders, signingSchema } from './webhook/signing.ts'
import { guardedLookup, schemeProblem, urlProblem } from './webhook/target.ts'
import { templateSchema } from './webhook/template.ts'
import { openTransport } from './webhook/transport.ts'

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
    auth: webhookAuthSchema.optional().describe('What the Authorization header says.'),
    signing: signingSchema.optional().describe('Signs each request as Standard Webhooks has it.'),
    validate: validateSchema.describe(
      'Asks the receiver for its consent by OPTIONS before anything is sent, and keeps to the rate that it allows.',
    ),
    tls: clientTlsSchema.optional().describe('Certificates of your own; read anew for each connection.'),
    allowHttp: z.boolean().default(false).describe('Allows plain http to other machines.'),
    template: templateSchema
      .optional()
      .describe('Shape of another tool: event-grid, pagerduty, slack, splunk-hec, teams, or the path of a file.'),
  })
  .superRefine(({ url, allowHttp, auth, headers, mode, template }, context) => {
    const message = schemeProblem(url, allowHttp)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['url'], message })
    if (auth !== undefined && Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
      context.addIssue({ code: 'custom', path: ['auth'], message: 'expected either `auth` or the header Authorization, got both' })
    }
    if (template !== undefined && mode === 'binary') {
      context.addIssue({
        code: 'custom',
        path: ['template'],
        message: 'expected either `template` or `mode: binary`, got both: each decides the whole body',
      })
    }
  })

type WebhookOptions = z.output<typeof options>

export default defineSink({
  type: 'webhook',
  summary: 'One HTTP POST per event',
  options,
  formats: ['cloudevents', 'azure-resource-log', 'ecs', 'splunk-hec'],
  ownBody: ({ mode, template }) => (template !== undefined ? 'template' : mode === 'binary' ? 'mode: binary' : undefined),
  defaults: { maxAgeSeconds: 24 * 60 * 60 },
  open: openWebhook,
})

/** What an event needs on its way, in this order: its text, leave to send, credentials, signature. */
async function openWebhook(given: WebhookOptions, context: SinkContext): Promise<Sink> {
  const problem = urlProblem(given.url) ?? schemeProblem(given.url, given.allowHttp)
  if (problem !== undefined) throw new ForeshockError('sink_unusable', `sink ${context.name}: url: ${problem}`)
  const target = new URL(given.url)
  const { now } = context
  const encode = await encoder(given, context.format)
  const authorize = given.auth === undefined ? undefined : await authorizer(given.auth)
  const transport = await openTransport({
    target,
    lookup: guardedLookup(target.protocol === 'http:' && !given.allowHttp),
    proxy: checkedProxy(proxyFor(target, context.env)),
    tls: async () => (given.tls === undefined ? {} : readClientTls(given.tls)),
  })

  const commonHeaders = async (signal: AbortSignal): Promise<Record<string, string>> => ({
    'user-agent': context.agent,
    ...(asking === undefined ? {} : { 'webhook-request-origin': asking.origin }),
    ...(await readHeaders(given.headers)),
    ...(authorize === undefined ? {} : { authorization: await authorize(signal) }),
  })

  const asking = askingOf(given.validate)
  const permit =
    asking === undefined
      ? undefined
      : permission({
          asking,
          target,
          now,
          async ask(signal) {
            const rate = asking.rate === undefined ? {} : { 'webhook-request-rate': String(asking.rate) }
            return transport.send({ method: 'OPTIONS', headers: { ...(await commonHeaders(signal)), ...rate }, body: null }, signal)
          },
        })

  const post = async (event: CloudEvent, signal: AbortSignal): Promise<DeliveryOutcome> => {
    const { headers, body } = await encode(event)
    const common = await commonHeaders(signal)
    const leave = await permit?.leave(signal)
    if (leave !== undefined && 'outcome' in leave) return leave.outcome
    try {
      const signed = { id: percentEncode(event.id), timestamp: now(), body }
      const signature = given.signing === undefined ? {} : await signatureHeaders(signed, given.signing)
      const answer = await transport.send({ method: 'POST', headers: { ...common, ...headers, ...signature }, body }, signal)
      return classifyAnswer(answer, { target, now: now() })
    } finally {
      leave?.done()
    }
  }

  const attempt = async (event: CloudEvent, signal: AbortSignal): Promise<DeliveryOutcome> => {
    try {
      const outcome = await post(event, signal)
      // A receiver that has withdrawn its consent may refuse by any status; then the event is not to blame, and waits.
      if (outcome.status === 'rejected') return (await permit?.renew(signal)) ?? outcome
      return outcome
    } catch (error) {
      if (signal.aborted) return interrupted(signal)
      const { because, code, detail } = classifyFailure(error, target)
      return { status: 'retry', because, code, detail }
    }
  }

  const prove = async (signal: AbortSignal): Promise<CheckResult> => {
    await commonHeaders(signal)
    if (given.signing !== undefined) await signatureHeaders({ id: 'check', timestamp: now(), body: '' }, given.signing)
    if (permit === undefined) {
      await transport.connectOnce(signal)
      return { ok: true, detail: `${target.host} can be connected to${target.protocol === 'https:' ? ' and is verified' : ''}` }
    }
    const refusal = await permit.renew(signal)
    if (refusal === undefined) return { ok: true, detail: `${target.host} gives its consent` }
    const detail = refusal.status === 'delivered' ? refusal.status : refusal.detail
    return { ok: false, detail, cure: 'let the receiver answer OPTIONS with WebHook-Allowed-Origin and WebHook-Allowed-Rate' }
  }

  return {
    // undici notices the signal only once a connection stands, so a handshake that hangs has to be left behind here.
    deliver: (event, { signal }) => untilAborted(signal, () => attempt(event, signal)),
    async check({ signal }): Promise<CheckResult> {
      try {
        return await prove(signal)
      } catch (error) {
        if (signal.aborted) {
          return { ok: false, detail: `${target.host} did not answer within the time limit`, cure: 'check firewall, port and the receiver' }
        }
        const { detail, cure } = classifyFailure(error, target)
        return { ok: false, detail, cure }
      }
    },
    close: () => transport.close(),
  }
}

/** A proxy is a target as well. Throws `sink_unusable` where it is one that must not be reached. */
function checkedProxy(proxy: URL | undefined): URL | undefined {
  const problem = proxy === undefined ? undefined : urlProblem(proxy.origin)
  if (problem !== undefined) throw new ForeshockError('sink_unusable', `the proxy that the environment names: ${problem}`)
  return proxy
}
