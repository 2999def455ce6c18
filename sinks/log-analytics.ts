import { Agent } from 'node:https'
import { z } from 'zod'
import { tokenAuthVariants } from './azure/token-auth.ts'
import { credentialOf } from './azure/credential.ts'
import { tokenFor } from './azure/token.ts'
import type { CloudEvent } from './cloud-event.ts'
import { defineSink, delivered, type CheckResult, type DeliveryOutcome, type Sink, type SinkContext } from './contract.ts'
import { ForeshockError } from './error.ts'
import { interrupted, untilAborted } from './interrupted.ts'
import { classifyError, classifyStatus } from './log-analytics/classify.ts'
import { recordOf } from './log-analytics/record.ts'
import { proxyFor } from './proxy.ts'
import { classifyFailure } from './webhook/failure.ts'
import { guardedLookup, urlProblem } from './webhook/target.ts'
import { openTransport } from './webhook/transport.ts'

const options = z.strictObject({
  endpoint: z
    .string()
    .superRefine((text, context) => {
      const message = endpointProblem(text)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .describe('Logs ingestion endpoint of the data collection rule, such as https://name-abcd.westeurope-1.ingest.monitor.azure.com.'),
  ruleId: z
    .string()
    .regex(/^dcr-[0-9a-zA-Z]+$/, 'expected the immutable id of a data collection rule, dcr-…')
    .describe('Immutable id of the data collection rule, dcr-….'),
  stream: z
    .string()
    .regex(/^(?:Custom|Microsoft)-[A-Za-z0-9_-]+$/, 'expected the name of a stream such as Custom-Foreshock')
    .default('Custom-Foreshock')
    .describe('Stream of that rule whose columns are those of config/azure/data-collection-rule.json.'),
  auth: z
    .discriminatedUnion('type', tokenAuthVariants)
    .default({ type: 'managed-identity' })
    .describe('Who sends; needs the role Monitoring Metrics Publisher on the rule.'),
})
type LogAnalyticsOptions = z.output<typeof options>

/** Of the token, by the cloud that the endpoint is in. */
const audiences = [
  { suffix: '.azure.us', audience: 'https://monitor.azure.us' },
  { suffix: '.azure.cn', audience: 'https://monitor.azure.cn' },
]

export default defineSink({
  type: 'log-analytics',
  summary: 'One row per event in a Log Analytics table, for Microsoft Sentinel',
  options,
  open: openLogAnalytics,
})

async function openLogAnalytics(
  { endpoint, ruleId, stream, auth }: LogAnalyticsOptions,
  { agent: program, env, now }: SinkContext,
): Promise<Sink> {
  const { LogsIngestionClient } = await import('@azure/monitor-ingestion')
  const target = new URL(endpoint)
  const audience = audiences.find(({ suffix }) => target.hostname.endsWith(suffix))?.audience ?? 'https://monitor.azure.com'
  const credential = await credentialOf(auth)
  const proxy = proxyFor(target, env)
  // An agent of its own, to be closed with the sink; behind a proxy the SDK brings one that keeps nothing.
  const agent = new Agent({ keepAlive: true, lookup: guardedLookup(false) })
  const client = new LogsIngestionClient(
    target.origin,
    {
      getToken: async (_, { abortSignal = new AbortController().signal } = {}) => ({
        token: await tokenFor(credential, `${audience}/.default`, toSignal(abortSignal)),
        // The credential keeps tokens itself and renews them in time; the SDK is to ask it for each request.
        expiresOnTimestamp: Date.now() + 4 * 60_000,
      }),
    },
    {
      audience,
      // The outbox owns retry, and a redirect would carry the token away.
      retryOptions: { maxRetries: 0 },
      redirectOptions: { maxRetries: 0 },
      userAgentOptions: { userAgentPrefix: program.replace(/[^\x21-\x7e]/g, '') },
      additionalPolicies: [
        {
          position: 'perCall',
          policy: {
            name: 'foreshock-agent',
            sendRequest(request, next) {
              if (proxy === undefined) request.agent = agent
              return next(request)
            },
          },
        },
      ],
    },
  )

  let closed = false
  const attempt = async (event: CloudEvent, signal: AbortSignal): Promise<DeliveryOutcome> => {
    if (closed) return { status: 'retry', because: 'transient', code: 'closed', detail: 'the sink is closed' }
    try {
      await client.upload(ruleId, stream, [recordOf(event)], { abortSignal: signal })
      return signal.aborted ? interrupted(signal) : delivered
    } catch (error) {
      if (signal.aborted) return interrupted(signal)
      return classifyError(error, target.host, now())
    }
  }

  return {
    deliver: (event, { signal }) => untilAborted(signal, () => attempt(event, signal)),
    async check({ signal }): Promise<CheckResult> {
      try {
        const token = await tokenFor(credential, `${audience}/.default`, signal)
        return await proveRights({ target, path: `/dataCollectionRules/${ruleId}/streams/${stream}`, token, proxy, program, now }, signal)
      } catch (error) {
        if (signal.aborted) {
          return {
            ok: false,
            detail: `${target.host} did not answer within the time limit`,
            cure: 'check firewall, name service and proxy',
          }
        }
        const { detail, cure } = classifyFailure(error, target)
        return { ok: false, detail, cure }
      }
    },
    async close() {
      closed = true
      agent.destroy()
    },
  }
}

/** Sends a list of no rows, which leaves none behind: only who may send rows gets as far as an answer about them. */
async function proveRights(
  {
    target,
    path,
    token,
    proxy,
    program,
    now,
  }: {
    readonly target: URL
    readonly path: string
    readonly token: string
    readonly proxy: URL | undefined
    readonly program: string
    readonly now: () => number
  },
  signal: AbortSignal,
): Promise<CheckResult> {
  const url = new URL(`${path}?api-version=2023-01-01`, target)
  const transport = await openTransport({ target: url, lookup: guardedLookup(false), proxy, tls: async () => ({}) })
  try {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'user-agent': program }
    const { status, retryAfter } = await transport.send({ method: 'POST', headers, body: '[]' }, signal)
    if (status === 204 || status === 200 || status === 400) return { ok: true, detail: `${target.host} takes rows for this rule` }
    const { detail } = classifyStatus(status, '', retryAfter, now())
    return { ok: false, detail, cure: 'mend what it says; see docs/sentinel.md for the set-up' }
  } finally {
    await transport.close()
  }
}

function endpointProblem(text: string): string | undefined {
  const problem = urlProblem(text)
  if (problem !== undefined) return problem
  const { protocol, pathname, search } = new URL(text)
  if (protocol !== 'https:') return 'expected an https URL, got http'
  return pathname === '/' && search === '' ? undefined : 'expected the endpoint alone, without a path'
}

/** What the SDK calls a signal is the standard one in all but its type. */
function toSignal(signal: { readonly aborted: boolean }): AbortSignal {
  if (signal instanceof AbortSignal) return signal
  throw new ForeshockError('sink_unusable', 'expected the signal of the delivery from @azure/monitor-ingestion')
}
