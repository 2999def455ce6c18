import { z } from 'zod'
import type { ApiVersion } from '../../imds/api-versions.ts'

const startRequestsSchema = z.looseObject({
  DocumentIncarnation: z.union([z.string(), z.number()]).optional(),
  StartRequests: z.array(z.looseObject({ EventId: z.string().min(1) })).min(1),
})

/** The ids that a StartRequests body asks for, or what is wrong with it. The first version wants DocumentIncarnation beside it, the later ones ignore it. */
export function parseStartRequests(
  version: ApiVersion,
  body: string,
): { readonly eventIds: readonly string[] } | { readonly problem: string } {
  if (body === '') return { problem: 'expected a body with StartRequests, got none' }
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { problem: `expected JSON: ${error.message}` }
  }
  const parsed = startRequestsSchema.safeParse(json)
  if (parsed.success) {
    const { DocumentIncarnation, StartRequests } = parsed.data
    if (version === '2017-03-01' && DocumentIncarnation === undefined)
      return { problem: 'expected DocumentIncarnation beside StartRequests in the version 2017-03-01, got none' }
    return { eventIds: StartRequests.map((request) => request.EventId) }
  }
  return { problem: `expected {"StartRequests":[{"EventId":"…"}]}: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}` }
}
