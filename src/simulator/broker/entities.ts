import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ForeshockError } from '../../../sinks/error.ts'
import { mistakesOf, pathText } from '../../config/mistake.ts'
import { readYaml } from '../../config/yaml.ts'
import { allRights } from './token.ts'

/** Names as Azure takes them, so that what works here works there. */
const entityName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9_])?$/,
    'letters, digits, ".", "-", "_" and "/", at most 260, beginning and ending well',
  )
const seconds = z.number().positive()

const filterSchema = z
  .strictObject({
    subject: z.string().optional(),
    correlationId: z.string().optional(),
    messageId: z.string().optional(),
    to: z.string().optional(),
    replyTo: z.string().optional(),
    sessionId: z.string().optional(),
    contentType: z.string().optional(),
    applicationProperties: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  })
  .refine((filter) => Object.keys(filter).length > 0, 'at least one property to compare, or no filter at all for every message')
  .describe('Correlation filter: all that is given must be equal')

const receiving = {
  lockSeconds: seconds.default(60).describe('How long a message or session stays locked'),
  maxDeliveryCount: z.int().positive().default(10),
  requiresSession: z.boolean().default(false),
  defaultTtlSeconds: seconds.nullable().default(null).describe('null: messages live for ever'),
  deadLetterOnExpiry: z.boolean().default(false),
}

const maxMessageBytes = z.int().positive().default(262_144)
/** Everything is in memory, so everything has an end: what is more is refused. */
const holding = { maxMessages: z.int().positive().default(100_000), maxMegabytes: z.number().positive().default(256) }

const eventHubSchema = z.strictObject({
  name: entityName,
  partitions: z.int().min(1).max(32).default(4),
  consumerGroups: z.array(z.string().min(1)).default([]).describe('Besides $Default, which always exists'),
  maxMessageBytes: z.int().positive().default(1_048_576),
  retainedEvents: z.int().positive().default(25_000).describe('Per partition; older ones are dropped'),
  retainedMegabytes: z.number().positive().default(64).describe('The same, by size'),
})

const queueSchema = z.strictObject({
  name: entityName,
  ...receiving,
  duplicateDetectionSeconds: z.number().min(0).default(0).describe('0: off'),
  maxMessageBytes,
  ...holding,
})

const subscriptionSchema = z.strictObject({
  name: entityName,
  ...receiving,
  filter: filterSchema.optional().describe('Without one: every message'),
  ...holding,
})

const topicSchema = z.strictObject({
  name: entityName,
  duplicateDetectionSeconds: z.number().min(0).default(0).describe('0: off'),
  maxMessageBytes,
  subscriptions: z.array(subscriptionSchema).default([]),
})

const keySchema = z.strictObject({
  name: z.string().min(1),
  key: z.string().min(1),
  rights: z.array(z.enum(allRights)).default([...allRights]),
})

const entitiesSchema = z
  .strictObject({
    keys: z.array(keySchema).default([]).describe('Shared access keys. Without any, every key name and signature is taken'),
    eventHubs: z.array(eventHubSchema).default([]),
    queues: z.array(queueSchema).default([]),
    topics: z.array(topicSchema).default([]),
  })
  .superRefine((entities, context) => {
    const seen = new Set<string>()
    for (const kind of ['eventHubs', 'queues', 'topics'] as const) {
      for (const [at, { name }] of entities[kind].entries()) {
        // One namespace for all, compared without case, as in Azure.
        if (seen.has(name.toLowerCase())) context.addIssue({ code: 'custom', path: [kind, at, 'name'], message: `${name} is there twice` })
        seen.add(name.toLowerCase())
      }
    }
    for (const [at, topic] of entities.topics.entries()) {
      const names = topic.subscriptions.map((subscription) => subscription.name.toLowerCase())
      const twice = names.findIndex((name, index) => names.indexOf(name) !== index)
      if (twice >= 0) context.addIssue({ code: 'custom', path: ['topics', at, 'subscriptions', twice, 'name'], message: 'is there twice' })
    }
  })

/** What a file may say: everything with a default may be left out. */
export type EntitiesInput = z.input<typeof entitiesSchema>
export type Entities = z.output<typeof entitiesSchema>
export type EventHubEntity = Entities['eventHubs'][number]
export type QueueEntity = Entities['queues'][number]
export type SubscriptionEntity = Entities['topics'][number]['subscriptions'][number]
export type CorrelationFilter = z.output<typeof filterSchema>

/** What there is without a file: one of each, and all that the examples name. */
const builtIn: EntitiesInput = {
  eventHubs: [{ name: 'maintenance-hub' }],
  queues: [
    { name: 'approvals' },
    { name: 'approvals-by-session', requiresSession: true },
    { name: 'replies' },
    { name: 'drain', requiresSession: true },
  ],
  topics: [
    { name: 'maintenance', subscriptions: [{ name: 'all' }] },
    { name: 'approval-requests', subscriptions: [{ name: 'web_0' }] },
  ],
}

/** Entities from a YAML (or JSON) file; without one, a small built-in set. Throws `config_invalid` with every mistake at once. */
export async function loadEntities(file?: string): Promise<Entities> {
  if (file === undefined) return parseEntities(builtIn, 'the built-in entities')
  let text
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ForeshockError('config_invalid', `the entities file ${file} cannot be read: ${why}`, { cause })
  }
  const yaml = readYaml(text)
  if (!yaml.ok) {
    const lines = yaml.mistakes.map((mistake) => `  ${mistake}`)
    throw new ForeshockError('config_invalid', [`${file} is no valid YAML:`, ...lines].join('\n'))
  }
  return parseEntities(yaml.value ?? {}, file)
}

/** Fills in the defaults. `origin` names the source in the error. */
export function parseEntities(input: unknown, origin: string): Entities {
  const parsed = entitiesSchema.safeParse(input)
  if (parsed.success) return parsed.data
  const lines = mistakesOf(parsed.error, input).map((mistake) => `  ${pathText(mistake.path)}: ${mistake.message}`)
  throw new ForeshockError('config_invalid', [`mistakes in ${origin}:`, ...lines].join('\n'))
}
