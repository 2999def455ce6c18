import pRetry from 'p-retry'
import { z } from 'zod'
import { ForeshockError } from '../../sinks/error.ts'
import { metadataApiVersions } from './api-versions.ts'
import type { ImdsClient, RequestOptions } from './client.ts'
import { failure, type Failure } from './failure.ts'

/** Who and where this VM is. null is "not said": IMDS writes a missing value as `""`. */
interface Instance {
  /** `compute.name`, the name in Resources; never the hostname. */
  readonly vmName: string | null
  readonly vmId: string | null
  readonly resourceId: string | null
  /** ARM id of the scale set. */
  readonly scaleSetId: string | null
  readonly scaleSet: string | null
  readonly location: string | null
  readonly zone: string | null
  readonly faultDomain: string | null
  readonly updateDomain: string | null
  /** May hold secrets: publish only what is allowed by name. */
  readonly tags: Readonly<Record<string, string>>
}

export type InstanceResult = { readonly kind: 'instance'; readonly instance: Instance } | Failure

/** The older one lacks virtualMachineScaleSet. */
const [newest, older] = metadataApiVersions

const text = z
  .union([z.string(), z.number().transform(String)])
  .transform((value) => (value === '' ? null : value))
  .catch(null)

const tag = z.object({ name: z.string().min(1), value: z.string() })
const tags = z
  .array(tag.nullable().catch(null))
  .catch([])
  .transform((list) => Object.fromEntries(list.flatMap((tag) => (tag === null ? [] : [[tag.name, tag.value]]))))

const computeSchema = z.object({
  name: text,
  vmId: text,
  resourceId: text,
  vmScaleSetName: text,
  virtualMachineScaleSet: z.object({ id: text }).catch({ id: null }),
  location: text,
  zone: text,
  platformFaultDomain: text,
  platformUpdateDomain: text,
  tagsList: tags,
})

/** Reads instance metadata once. Rejects only with the reason of `signal`. */
export async function readInstance(client: Pick<ImdsClient, 'getJson'>, options: RequestOptions = {}): Promise<InstanceResult> {
  const first = await client.getJson(pathOf(newest), options)
  // A 400 is how IMDS says that it does not know a version (yet).
  const result = first.kind === 'failure' && first.status === 400 ? await client.getJson(pathOf(older), options) : first
  return result.kind === 'failure' ? result : parseInstance(result.value)
}

/** Failures that waiting may cure. A redirect, or something else that answers in the place of IMDS, stays. */
const passing = new Set<Failure['reason']>([
  'timeout',
  'refused',
  'unroutable',
  'reset',
  'bad_http',
  'network',
  'http_status',
  'empty_body',
  'truncated',
])

/**
 * Reads instance metadata, again and again while that may help: at a boot the network or the host may be late.
 * Resolves with the last failure when `maxWaitMs` is over; rejects only with the reason of `signal`.
 */
export async function readInstancePatiently(
  client: Pick<ImdsClient, 'getJson'>,
  options: {
    readonly signal?: AbortSignal | undefined
    readonly maxWaitMs: number
    /** Milliseconds before the second attempt (1 s), doubling to 10 s. */
    readonly firstWaitMs?: number
  },
): Promise<InstanceResult> {
  const { signal, maxWaitMs, firstWaitMs = 1_000 } = options
  let last: Failure | undefined
  try {
    return await pRetry(
      async () => {
        const result = await readInstance(client, { signal })
        if (result.kind === 'instance') return result
        last = result
        throw new ForeshockError('unreachable', result.detail)
      },
      {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: firstWaitMs,
        maxTimeout: 10_000,
        maxRetryTime: maxWaitMs,
        shouldRetry: ({ error }) => error instanceof ForeshockError && last !== undefined && mayPass(last),
        ...(signal && { signal }),
      },
    )
  } catch (error) {
    if (error instanceof ForeshockError && last !== undefined && signal?.aborted !== true) return last
    throw error
  }
}

function mayPass({ reason, status }: Failure): boolean {
  return passing.has(reason) && status !== 400 && status !== 401 && status !== 403
}

function pathOf(version: string): string {
  return `/metadata/instance/compute?api-version=${version}&format=json`
}

function parseInstance(value: unknown): InstanceResult {
  const parsed = computeSchema.safeParse(value)
  const compute = parsed.data
  // Nothing is required by itself, but an object without any identity is somebody else's.
  if (compute === undefined || (compute.name === null && compute.vmId === null && compute.resourceId === null)) {
    return failure('not_a_document', 'instance metadata: expected an object with name, vmId or resourceId, got none of them')
  }
  return {
    kind: 'instance',
    instance: {
      vmName: compute.name,
      vmId: compute.vmId,
      resourceId: compute.resourceId,
      scaleSetId: compute.virtualMachineScaleSet.id ?? scaleSetOf(compute.resourceId),
      scaleSet: compute.vmScaleSetName,
      location: compute.location,
      zone: compute.zone,
      faultDomain: compute.platformFaultDomain,
      updateDomain: compute.platformUpdateDomain,
      tags: compute.tagsList,
    },
  }
}

/** An instance of a uniform scale set is a child of it: `…/virtualMachineScaleSets/{set}/virtualMachines/{n}`. */
function scaleSetOf(resourceId: string | null): string | null {
  return /^(\/.+\/virtualMachineScaleSets\/[^/]+)\/virtualMachines\/[^/]+$/i.exec(resourceId ?? '')?.[1] ?? null
}
