import { z } from 'zod'
import type { JsonObject } from '../../sinks/cloud-event.ts'
import { dataschemaOf, type SchemaName } from './schema-uri.ts'

const text = z.string().nullable()
const instant = z.iso.datetime()

const vm = z
  .object({
    name: text.describe('Name as it stands in `resources`, null where instance metadata could not be read.'),
    vmId: text,
    location: text,
    zone: text,
    faultDomain: text,
    updateDomain: text,
    scaleSet: text.describe('Name of the scale set.'),
    tags: z.record(z.string(), z.string()).describe('Those that the configuration allows.'),
  })
  .describe('The VM that reports.')

const changeValue = z.union([z.string(), z.number(), z.null(), z.array(z.string())])

const evidence = z
  .object({
    rule: z
      .enum(['A', 'B', 'C', 'D', 'started', 'status'])
      .describe(
        'What decided. `started`: it had started, so it ran; `status`: the document itself said so; A to D: see the documentation.',
      ),
    d: z.int().nullable().describe('Incarnation now minus incarnation when last seen, null where that says nothing.'),
    gapSeconds: z.number().describe('Seconds between the last good poll before and this one.'),
    bootChanged: z.boolean().nullable().describe('Whether the VM booted in between, null where that is not known.'),
    likely: z.enum(['completed', 'cancelled']).exactOptional().describe('Where an uncertain verdict leans one way.'),
    inconclusive: z
      .enum(['gap', 'restart', 'unreadable', 'contradiction'])
      .exactOptional()
      .describe(
        'Why nothing was concluded: more than 24 h without a poll, a restart of the incarnation, an entry in the document that may be this very event but cannot be read, or contradicting signs.',
      ),
  })
  .describe('Why an end was judged as it was.')

const scheduledEvent = z
  .object({
    eventId: z.string().describe('As Azure spells it. The same event may appear under another case elsewhere.'),
    eventType: z.string().describe('Freeze, Reboot, Redeploy, Preempt, Terminate or whatever comes next, as sent.'),
    eventStatus: z.string().describe('As sent; for an end, as it stood last.'),
    eventSource: text.describe('Platform, User or null.'),
    resourceType: text,
    resources: z.array(z.string()).describe('Names of the VMs that it hits, sorted.'),
    resourcesTotal: z
      .int()
      .exactOptional()
      .describe('Only where `resources`, here or in `changes`, is cut to keep the event below 64 KiB: how many there are.'),
    notBefore: instant.nullable().describe('Earliest start. Once started, the last one announced.'),
    description: text.describe('At most 4 KiB.'),
    durationInSeconds: z.int().nullable().describe('As announced; -1 is "unknown".'),
    affectsThisVm: z.boolean().nullable().exactOptional().describe('Scope `vm` only: whether `resources` names the VM that reports.'),
    vm: vm.exactOptional(),
    changes: z
      .array(
        z.object({
          field: z.enum(['eventType', 'eventStatus', 'eventSource', 'notBefore', 'resources', 'durationInSeconds']),
          from: changeValue,
          to: changeValue,
        }),
      )
      .exactOptional()
      .describe('Against the state that this observer saw before.'),
    scheduledObserved: z.boolean().exactOptional().describe('On `started`: false where it was never seen as Scheduled.'),
    reappeared: z.literal(true).exactOptional().describe('The id had ended before.'),
    anomaly: z.enum(['started-to-scheduled', 'same-incarnation']).exactOptional().describe('A departure from the documented life cycle.'),
    outcome: z.enum(['completed', 'cancelled', 'vanished']).exactOptional(),
    evidence: evidence.exactOptional(),
    scheduledAt: instant.nullable().exactOptional().describe('First seen as Scheduled.'),
    startedAt: instant.nullable().exactOptional().describe('First seen as Started.'),
    endedAt: instant.exactOptional().describe('First seen as gone.'),
    gapSeconds: z.number().exactOptional().describe('How long nobody looked before the end was seen.'),
    raw: z.record(z.string(), z.json()).exactOptional().describe('The entry as it came, where a part of it could not be read.'),
  })
  .describe('Data of a scheduled event.')
export type ScheduledEventData = Omit<z.output<typeof scheduledEvent>, 'raw'> & { readonly raw?: JsonObject }

const forwarder = z
  .object({
    version: z.string().describe('Of foreshock.'),
    vm,
    uptimeSeconds: z.number().describe('Since the forwarder started.'),
    lastGoodPollAt: instant.nullable().describe('null before the first.'),
    downSeconds: z
      .number()
      .nullable()
      .describe('Since the last good poll; on `imds-recovered`, how long it had been down. null before the first.'),
    failures: z.int().describe('Failed polls in a row.'),
    lastError: text.describe('What the last failed poll met, null where none failed since the last good one.'),
    incarnation: z.union([z.number(), z.string(), z.null()]).describe('Of the last accepted document.'),
    liveEvents: z
      .array(z.object({ eventId: z.string(), eventType: z.string(), eventStatus: z.string(), notBefore: instant.nullable() }))
      .describe('The first 50 that stand in the document.'),
    liveEventsTotal: z.int(),
    outbox: z.record(z.string(), z.int()).describe('How many events wait, by sink.'),
  })
  .describe('Data of an event about the forwarder itself.')
export type ForwarderData = z.output<typeof forwarder>

const approval = z
  .object({
    eventId: text.describe('The event that was to be approved, null where the message could not be read.'),
    code: z.string().describe('`ok` when relayed, else the reason.'),
    via: z.enum(['queue', 'policy', 'command']),
    requestedBy: text,
    reason: text,
    messageId: text,
    issuer: text,
    keyIds: z.array(z.string()),
    digest: text.describe('The digest to which the approval was bound.'),
    resources: z.array(z.string()).nullable(),
    eventType: text,
    attempts: z.int().nonnegative(),
    detail: text.describe('One line for people.'),
  })
  .describe('Data of an approval event: who asked, what came of it and why.')
export type ApprovalData = z.output<typeof approval>

/** The published JSON Schemas (draft 2020-12) of `data`, by name. Further properties are allowed, so that a later release may add some. */
export function eventSchemas(): Record<SchemaName, z.core.JSONSchema.JSONSchema> {
  return {
    scheduledevent: published('scheduledevent', scheduledEvent),
    forwarder: published('forwarder', forwarder),
    approval: published('approval', approval),
  }
}

function published(name: SchemaName, schema: z.ZodType): z.core.JSONSchema.JSONSchema {
  return { $id: dataschemaOf(name), ...z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input' }) }
}
