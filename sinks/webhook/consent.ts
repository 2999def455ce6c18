import { z } from 'zod'
import type { Response } from './transport.ts'

/** One label or several, as in `eventemitter.example.com`. */
const dnsName = /^(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/i

export const validateSchema = z
  .union([
    z.boolean(),
    z.strictObject({
      origin: z
        .string()
        .max(253)
        .regex(dnsName, 'expected a DNS name such as foreshock.contoso.com')
        .describe('Who asks for consent: a DNS name that stands for all your forwarders together; `foreshock` by default.'),
      rate: z.int().min(1).optional().describe('How many requests a minute to ask for.'),
    }),
  ])
  .default(false)

/** Whom the sink asks as, and for how much. */
export interface Asking {
  readonly origin: string
  /** Requests a minute. */
  readonly rate: number | undefined
}

/** What `validate` of the options comes to; undefined where nothing is asked. */
export function askingOf(validate: z.output<typeof validateSchema>): Asking | undefined {
  if (validate === false) return undefined
  return validate === true ? { origin: 'foreshock', rate: undefined } : { origin: validate.origin, rate: validate.rate }
}

/** How many requests a minute the receiver takes; Infinity where it sets no limit. */
export type Consent = { readonly given: true; readonly perMinute: number } | { readonly given: false; readonly why: string }

/**
 * Reads the answer to OPTIONS. Its status says nothing: consent is in the headers alone.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection
 */
export function consentOf(
  { status, allowedOrigin, allowedRate }: Pick<Response, 'status' | 'allowedOrigin' | 'allowedRate'>,
  { origin }: Asking,
): Consent {
  if (allowedOrigin === undefined) return { given: false, why: `answered ${status} to OPTIONS without WebHook-Allowed-Origin` }
  if (allowedOrigin !== '*' && allowedOrigin.toLowerCase() !== origin.toLowerCase()) {
    return { given: false, why: `allows another origin than ${origin}` }
  }
  if (allowedRate === undefined || allowedRate === '*') return { given: true, perMinute: Number.POSITIVE_INFINITY }
  if (!/^[1-9]\d{0,8}$/.test(allowedRate))
    return { given: false, why: 'allows no rate that could be read: expected a positive integer or *' }
  return { given: true, perMinute: Number(allowedRate) }
}
