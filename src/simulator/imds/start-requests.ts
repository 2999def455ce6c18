import { z } from 'zod'

/** DocumentIncarnation stands beside it in 2017-03-01; accepted and ignored in every version. */
const startRequestsSchema = z.looseObject({
  DocumentIncarnation: z.union([z.string(), z.number()]).optional(),
  StartRequests: z.array(z.looseObject({ EventId: z.string().min(1) })).min(1),
})

/** The ids that a StartRequests body asks for, or what is wrong with it. */
export function parseStartRequests(body: string): { readonly eventIds: readonly string[] } | { readonly problem: string } {
  if (body === '') return { problem: 'expected a body with StartRequests, got none' }
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { problem: `expected JSON: ${error.message}` }
  }
  const parsed = startRequestsSchema.safeParse(json)
  if (parsed.success) return { eventIds: parsed.data.StartRequests.map((request) => request.EventId) }
  return { problem: `expected {"StartRequests":[{"EventId":"…"}]}: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}` }
}
