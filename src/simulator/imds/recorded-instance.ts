import type { Agent } from 'undici'
import { z } from 'zod'
import { metadataApiVersions } from '../../imds/api-versions.ts'
import { ask } from './ask.ts'

const text = z.string().optional()

/** What identifies a machine and its place. Not here on purpose: tags, user data, custom data, public keys. */
const computeSchema = z.object({
  azEnvironment: text,
  evictionPolicy: text,
  location: text,
  name: text,
  osProfile: z.object({ computerName: text }).optional(),
  osType: text,
  physicalZone: text,
  placementGroupId: text,
  platformFaultDomain: text,
  platformUpdateDomain: text,
  priority: text,
  resourceGroupName: text,
  resourceId: text,
  subscriptionId: text,
  virtualMachineScaleSet: z.object({ id: text }).optional(),
  vmId: text,
  vmScaleSetName: text,
  vmSize: text,
  zone: text,
})

/** The identity of the machine that records, subscription ids as zeros; null where its metadata cannot be read. */
export async function recordableCompute(agent: Agent, origin: string, signal: AbortSignal): Promise<Record<string, unknown> | null> {
  for (const version of metadataApiVersions) {
    const heard = await ask(agent, `${origin}/metadata/instance/compute?api-version=${version}&format=json`, { timeoutMs: 10_000, signal })
    if (heard === null || 'noAnswer' in heard) return null
    if (heard.status !== 200) continue
    const parsed = computeText.safeParse(heard.body.toString())
    if (parsed.success) return parsed.data
  }
  return null
}

const subscriptionId = /(?<=\/subscriptions\/|"subscriptionId"\s*:\s*")[0-9a-f-]{36}/gi

const computeText = z
  .string()
  .transform((body, context): unknown => {
    try {
      return JSON.parse(body.replaceAll(subscriptionId, '00000000-0000-0000-0000-000000000000'))
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      context.addIssue({ code: 'custom', message: 'expected JSON' })
      return z.NEVER
    }
  })
  .pipe(computeSchema)
