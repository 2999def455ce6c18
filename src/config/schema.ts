import { z } from 'zod'
import { printableText } from '../events/printable-text.ts'
import { apiVersions, defaultApiVersion } from '../imds/api-versions.ts'
import { approvalsSchema, controlSchema } from './approvals.ts'

const oneSecond = 1000
const dayOfSeconds = 24 * 60 * 60

function isHttpOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.protocol === 'http:' && url.pathname === '/' && url.search === '' && url.username === ''
}

function isListenAddress(text: string): boolean {
  const port = /^(?:\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):(\d{1,5})$/.exec(text)?.[1]
  return port !== undefined && Number(port) <= 65_535
}

const originExpected = 'expected "discover" or an origin such as http://169.254.169.254'
const listenExpected = 'expected host:port such as 127.0.0.1:9464 or [::1]:9464, or false'

const imds = z
  .strictObject({
    endpoint: z
      .union([z.literal('discover'), z.string().refine(isHttpOrigin, { error: originExpected })], { error: originExpected })
      .default('http://169.254.169.254')
      .describe('Where IMDS answers, or `discover`: SCHEDULEDEVENTSIP, then DHCP option 245 from the lease files.'),
    apiVersion: z.enum(apiVersions).default(defaultApiVersion).describe('Version of the Scheduled Events API.'),
    pollIntervalMs: z
      .int()
      .min(100)
      .max(3_600_000)
      .default(oneSecond)
      .describe('Milliseconds between polls. Preempt gives 30 s notice; the budget of 5 requests/s is shared with every agent on the VM.'),
    unreachableAfterFailures: z.int().min(1).max(10_000).default(10).describe('Failed polls in a row before `imds-unreachable` is told.'),
  })
  .prefault({})

const identity = z
  .strictObject({
    source: printableText.max(512).optional().describe('CloudEvents source, for machines without instance metadata.'),
    vmName: printableText.max(128).optional().describe('Name of this VM as it stands in Resources.'),
  })
  .prefault({})

const events = z
  .strictObject({
    typePrefix: z
      .string()
      .regex(/^[a-z0-9]+([.-][a-z0-9]+)*$/, 'expected lower-case words joined by dots, such as com.contoso.maintenance')
      .max(100)
      .default('foreshock')
      .describe('First part of every CloudEvents type.'),
    tags: z
      .array(z.string().min(1))
      .default([])
      .describe('Names of the VM tags that may be published (scope `vm`). Tags can hold secrets: none by default.'),
  })
  .prefault({})

/** What an event must be to reach a sink. All given parts must match; within one part any entry is enough. */
const filter = z.strictObject({
  types: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe('CloudEvents types, whole or without prefix and version (`scheduledevent.started`); a final `*` stands for any rest.'),
  eventTypes: z.array(z.string().min(1)).min(1).optional().describe('Freeze, Reboot, Redeploy, Preempt, Terminate.'),
  eventSources: z.array(z.string().min(1)).min(1).optional().describe('Platform, User.'),
  affectsThisVm: z.boolean().optional().describe('Whether Resources names this VM.'),
})
export type Filter = z.output<typeof filter>

/** Options that every sink has; `src/config/sinks.ts` joins them with those of the sink's own definition. */
export const commonSinkOptions = z.strictObject({
  name: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/, 'expected 1 to 63 letters, digits, dots, dashes or underscores')
    .describe('Unique name: in logs, metrics and the outbox.'),
  type: z.string().min(1).describe('Which sink: a word of this page, a package name, or a path to a module.'),
  format: z
    .enum(['cloudevents', 'azure-resource-log', 'ecs', 'splunk-hec'])
    .default('cloudevents')
    .describe('Shape of what is sent; each sink says which it can write.'),
  filter: filter.optional().describe('Which events reach this sink; all by default.'),
  maxAgeSeconds: z
    .int()
    .min(1)
    .max(365 * dayOfSeconds)
    .optional()
    .describe('An event that could not be delivered for so long becomes a dead letter.'),
  concurrency: z.int().min(1).max(256).optional().describe('Deliveries at once; one event id is always in order.'),
  timeoutSeconds: z.number().min(0.1).max(3600).optional().describe('Time that one delivery may take.'),
})

export const sinkDefaults = { maxAgeSeconds: 7 * dayOfSeconds, concurrency: 16, timeoutSeconds: 30 } as const

/** The configuration file but for `sinks`, whose options depend on their types. */
export const configSchema = z.strictObject({
  imds,
  scope: z.enum(['group', 'vm']).default('group').describe('Whose event it is: decides source and id. `vm` is for evidence per machine.'),
  publish: z
    .enum(['all', 'own', 'leader'])
    .default('all')
    .describe('Who publishes: everyone who sees it, those it names, or the first it names.'),
  identity,
  events,
  state: z
    .strictObject({ path: z.string().min(1).default('/var/lib/foreshock/state.db').describe('SQLite file: outbox and remembered state.') })
    .prefault({}),
  heartbeat: z
    .strictObject({
      intervalSeconds: z.int().min(0).max(dayOfSeconds).default(300).describe('Seconds between heartbeat events; 0 is off.'),
    })
    .prefault({}),
  sinks: z
    .array(z.unknown())
    .default([{ name: 'stdout', type: 'stdout' }])
    .describe('Where events go; each sink has an outbox of its own.'),
  control: controlSchema.optional().describe('Where approvals come from; no queue by default.'),
  approvals: approvalsSchema.optional().describe('What may be approved. Without this section and `control`, nothing is.'),
  admin: z
    .strictObject({
      listen: z
        .union([z.literal(false), z.string().refine(isListenAddress, { error: listenExpected })], { error: listenExpected })
        .default('127.0.0.1:9464')
        .describe('Address of /metrics, /healthz, /readyz and /status; port 0 picks a free one, `false` turns it off.'),
    })
    .prefault({}),
  log: z
    .strictObject({ level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info') })
    .prefault({})
    .describe('What goes to stderr.'),
  shutdownSeconds: z.number().min(0).max(3600).default(10).describe('Time to flush the outbox at SIGTERM.'),
})

export type ConfigFile = z.output<typeof configSchema>
