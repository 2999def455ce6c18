import { z } from 'zod'
import { connectionOptions, connectionProblems, entityName } from '../../sinks/azure/connection-options.ts'

const names = z.array(z.string().min(1)).min(1)
/** One word, or several of which any will do. */
const oneOrMore = z.union([
  z
    .string()
    .min(1)
    .transform((one) => [one]),
  names,
])

const timeOfDay = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'expected HH:MM, such as "22:00"')

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

const timeWindow = z.strictObject({
  days: z
    .array(z.enum(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']))
    .min(1)
    .optional()
    .describe('Days on which it begins; every day by default.'),
  from: timeOfDay.describe('HH:MM, included.'),
  to: timeOfDay.describe('HH:MM, excluded; earlier than `from` means the next day.'),
  timeZone: z.string().refine(isTimeZone, 'expected a time zone such as Europe/Zurich').default('UTC').describe('IANA name.'),
})

const when = z
  .strictObject({
    eventType: oneOrMore.optional().describe('Freeze, Reboot, Redeploy, Preempt, Terminate; one or a list.'),
    eventSource: oneOrMore.optional().describe('Platform or User.'),
    maxDurationSeconds: z.number().min(0).optional().describe('Announced impact at most; an unknown one is longer than any.'),
    affectsThisVm: z.boolean().optional().describe('Whether Resources names this VM.'),
    resourcesAtMost: z.int().min(1).optional().describe('How many machines it hits at most.'),
    minNoticeSeconds: z.number().min(0).optional().describe('Least time from the first sight of the event to NotBefore.'),
    timeWindows: z.array(timeWindow).min(1).optional().describe('Approved only while one of them is open; waits until then.'),
  })
  .refine(
    (given) => Object.values(given).some((value) => value !== undefined),
    'expected at least one condition: an empty one approves everything',
  )
  .describe('All that is given must hold.')

const rule = z.strictObject({
  when,
  after: z
    .array(z.string().min(1))
    .default([])
    .describe('Sinks that must have delivered the event as it stands first: a drain script in an `exec` sink, the copy in the SIEM.'),
  delaySeconds: z.number().min(0).max(86_400).default(0).describe('Time from the first sight of the event to the approval.'),
})

/** `approvals`: what may be approved, and what is approved without anybody asking. */
export const approvalsSchema = z.strictObject({
  events: z
    .enum(['own', 'any'])
    .default('own')
    .describe('`own`: only events whose Resources name this VM. `any`: those of the whole group, but for Terminate.'),
  leaderOnly: z.boolean().default(false).describe('Only the first machine in Resources relays, where several could.'),
  maxResources: z.int().min(1).max(1000).default(1).describe('Machines that one approval may start at most: it hits them all.'),
  eventTypes: names.default(['Freeze', 'Reboot', 'Redeploy']).describe('Types that may be approved.'),
  rateLimit: z
    .strictObject({
      approvals: z.int().min(1).max(10_000).default(30).describe('Events that may be approved within `perSeconds`.'),
      perSeconds: z.int().min(1).max(86_400).default(60),
    })
    .prefault({})
    .describe('A brake for whatever goes wrong on the other side.'),
  auto: z.array(rule).default([]).describe('The policy: the first rule that fits an event decides.'),
})

const trustKey = z.strictObject({
  issuers: names.optional().describe('Values of iss that this key may speak for.'),
  eventTypes: names.optional().describe('Types that this key may approve.'),
  audiences: names.optional().describe('Sources (groups or VMs) that this key may approve for.'),
})

const trust = z
  .discriminatedUnion(
    'type',
    [
      z
        .strictObject({ type: z.literal('rbac') })
        .describe('Whoever may send to the queue may approve: Send is the power to restart machines.'),
      z
        .strictObject({
          type: z.literal('signed'),
          jwks: z.string().min(1).describe('JWKS file with the public keys of the approvers; read again when it changes.'),
          quorum: z.int().min(1).max(16).default(1).describe('Signatures by different people with different keys that one message needs.'),
          keys: z.record(z.string().min(1), trustKey).default({}).describe('Limits by kid; a key without an entry has none.'),
        })
        .describe('Whoever holds a private key whose public part is in the file may approve.'),
    ],
    { error: 'expected { type: rbac } or { type: signed, jwks: FILE }' },
  )
  .describe('Whose word counts.')

/** `control`: where approvals come from. */
export const controlSchema = z
  .strictObject({
    type: z.literal('service-bus').default('service-bus'),
    namespace: connectionOptions.namespace,
    queue: entityName.optional().describe('Queue of the approvals. Either this, or topic and subscription.'),
    topic: entityName.optional(),
    subscription: entityName.optional(),
    session: z
      .string()
      .min(1)
      .max(128)
      .default('none')
      .describe('`none`, `vm` (the name of this VM), `group` (that of its scale set), or a fixed session id.'),
    auth: connectionOptions.auth,
    transport: connectionOptions.transport,
    customEndpoint: connectionOptions.customEndpoint,
    trust: trust.prefault({ type: 'rbac' }),
    maxDeliveryCount: z
      .int()
      .min(1)
      .max(2000)
      .default(10)
      .describe('As set on the queue. At the last delivery a message that could not be relayed is dead-lettered with its reason.'),
    pauseSeconds: z
      .number()
      .min(0.01)
      .max(30)
      .default(2)
      .describe('Rest before a message that may pass later is given back; doubles with each delivery, up to 30 s.'),
    concurrency: z
      .int()
      .min(1)
      .max(32)
      .default(4)
      .describe('Messages at once, without sessions; approvals themselves go one after the other.'),
    replies: z
      .strictObject({
        queue: entityName.describe('Queue to which `approve --via queue` has the reply sent.'),
        session: z.boolean().default(false).describe('The queue requires sessions: each asker reads a session of its own.'),
      })
      .optional(),
  })
  .superRefine((given, context) => {
    const { queue, topic, subscription } = given
    const add = (path: readonly string[], message: string): void => context.addIssue({ code: 'custom', path: [...path], message })
    for (const { path, message } of connectionProblems(given, { queue, topic })) add(path, message)
    if (topic !== undefined && subscription === undefined)
      add(['subscription'], 'missing: approvals are received from a subscription of the topic')
    if (topic === undefined && subscription !== undefined) add(['topic'], 'missing: a subscription belongs to a topic')
  })

export type ApprovalsConfig = z.output<typeof approvalsSchema>
export type ControlConfig = z.output<typeof controlSchema>

/** Rules across both sections and the sinks. */
export function approvalMistakes(
  { approvals }: { readonly approvals?: ApprovalsConfig | undefined },
  sinkNames: readonly string[],
): { readonly path: readonly PropertyKey[]; readonly message: string }[] {
  const mistakes: { readonly path: readonly PropertyKey[]; readonly message: string }[] = []
  for (const [index, { after, when, delaySeconds }] of (approvals?.auto ?? []).entries()) {
    for (const [at, sink] of after.entries()) {
      if (!sinkNames.includes(sink)) {
        mistakes.push({
          path: ['approvals', 'auto', index, 'after', at],
          message: `expected the name of a sink (${sinkNames.join(', ') || 'there are none'}), got "${sink}"`,
        })
      }
    }
    if (when.minNoticeSeconds !== undefined && delaySeconds > when.minNoticeSeconds) {
      mistakes.push({
        path: ['approvals', 'auto', index, 'delaySeconds'],
        message: `expected at most minNoticeSeconds (${when.minNoticeSeconds}), got ${delaySeconds}: Azure starts the event before the delay is over`,
      })
    }
    const types = when.eventType?.filter((type) => !approvals?.eventTypes.some((allowed) => allowed.toLowerCase() === type.toLowerCase()))
    if (types !== undefined && types.length > 0) {
      mistakes.push({
        path: ['approvals', 'auto', index, 'when', 'eventType'],
        message: `${types.join(', ')} may not be approved: add it to approvals.eventTypes`,
      })
    }
  }
  return mistakes
}
