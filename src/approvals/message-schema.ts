import { z } from 'zod'

/** Real ones have 36 characters; the longest that IMDS parsing takes are 256. */
const id = z.string().trim().min(1).max(256).refine(printable, 'expected printable text')
const words = (longest: number): z.ZodType<string> =>
  z.string().trim().min(1).max(longest).refine(printable, 'expected text without control characters')

const digestSchema = z
  .string()
  .regex(/^[0-9a-fA-F]{16,64}$/, 'expected 16 to 64 hex digits')
  .transform((digest) => digest.toLowerCase())
const resources = z.array(words(256)).max(1000)
const instant = z.iso.datetime({ offset: true, error: 'expected an RFC 3339 time' }).transform((time) => Date.parse(time))

function printable(text: string): boolean {
  return !/[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u.test(text)
}

/** Unknown keys are mistakes: a misspelt `digest` would silently be an approval of whatever the event has become. */
export const plainSchema = z.strictObject({
  command: words(64),
  eventId: id,
  digest: digestSchema.optional(),
  resources: resources.optional(),
  target: words(1024).optional(),
  requestedBy: words(256),
  reason: words(1024).optional(),
  expiresAt: instant.optional(),
})

/** The body that IMDS itself takes. */
export const startRequestsSchema = z.strictObject({
  StartRequests: z
    .array(z.strictObject({ EventId: id }))
    .min(1)
    .max(100),
  DocumentIncarnation: z.union([z.string(), z.number()]).optional(),
})

/** Seconds since the epoch; JWT allows fractions. */
const numericDate = z
  .number()
  .min(0)
  .max(8_640_000_000_000)
  .transform((seconds) => seconds * 1000)

/** Claims of a signed approval. Further claims of JWT may stand beside them; `evt` is ours and strict. */
export const claimsSchema = z.object({
  iss: words(256),
  sub: words(256).optional(),
  aud: z.union([words(1024).transform((one) => [one]), z.array(words(1024)).min(1).max(16)]),
  jti: words(256),
  iat: numericDate,
  nbf: numericDate.optional(),
  exp: numericDate,
  evt: z.strictObject({
    command: words(64),
    eventId: id,
    digest: digestSchema,
    resources: resources.optional(),
    reason: words(1024).optional(),
  }),
})
export type Claims = z.output<typeof claimsSchema>

/** Only what tells a CloudEvent from anything else; the rest of its attributes is the sender's. */
export const structuredSchema = z.looseObject({
  specversion: z.string(),
  type: z.string(),
  data: z.unknown().optional(),
  data_base64: z.base64().optional(),
})
