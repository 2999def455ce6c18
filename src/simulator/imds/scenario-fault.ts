import { z } from 'zod'

const headers = z.record(z.string(), z.string()).default({})

const effects = {
  status: {
    status: z.int().min(200).max(599),
    headers: headers.describe('For example Retry-After.'),
    body: z.string().optional().describe('Default: what such an answer usually carries.'),
  },
  html: { status: z.int().min(200).max(599).default(502) },
  delay: { delayMs: z.int().positive().max(600_000).describe('Real milliseconds, whatever the speed.') },
}

const when = {
  atSeconds: z.number().nonnegative().describe('When it begins.'),
  forSeconds: z.number().positive().describe('How long it lasts.'),
  every: z.int().min(1).default(1).describe('Only every nth request of a machine within this time.'),
  on: z
    .array(z.enum(['events', 'approvals', 'instance']))
    .min(1)
    .default(['events', 'approvals', 'instance'])
    .describe('Which requests: reading events, approving them, reading instance metadata.'),
}

/** A time in which the endpoint misbehaves. */
export const faultSchema = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('status'), ...when, ...effects.status }).describe('Another status. The request is not carried out.'),
    z
      .strictObject({ kind: z.literal('html'), ...when, ...effects.html })
      .describe('The page of a proxy in the way. The request is not carried out.'),
    z.strictObject({ kind: z.literal('delay'), ...when, ...effects.delay }).describe('The right answer, late.'),
    z.strictObject({ kind: z.literal('truncate'), ...when }).describe('Half of the body, then the connection is cut.'),
    z.strictObject({ kind: z.literal('reset'), ...when }).describe('Carried out, but the connection is reset instead of an answer.'),
    z.strictObject({ kind: z.literal('garbage'), ...when }).describe('200 with bytes that are neither JSON nor UTF-8.'),
    z.strictObject({ kind: z.literal('empty'), ...when }).describe('200 with zero bytes.'),
    z.strictObject({ kind: z.literal('hang'), ...when }).describe('Carried out, but never answered.'),
  ],
  { error: 'expected a kind: status, html, delay, truncate, reset, garbage, empty or hang' },
)
export type Fault = z.output<typeof faultSchema>

/**
 * A fault set by hand: the same keys without the times, and how many requests it lasts (default: until it is cleared).
 * `every` and `on` have the defaults of a scenario file.
 */
export type HandFault = (
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | { readonly kind: 'html'; readonly status?: number }
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: 'truncate' | 'reset' | 'garbage' | 'empty' | 'hang' }
) & { readonly every?: number; readonly on?: readonly ('events' | 'approvals' | 'instance')[]; readonly times?: number }
