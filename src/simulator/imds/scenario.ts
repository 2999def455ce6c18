import { z } from 'zod'
import { eventSchema } from './scenario-event.ts'
import { faultSchema } from './scenario-fault.ts'
import { frameSchema, type Frame } from './scenario-frame.ts'
import { stableId } from './stable-id.ts'

const vmSchema = z
  .strictObject({
    name: z.string().min(1).max(128).describe('The name in Azure (`compute.name`), which `resources` refers to; never the hostname.'),
    compute: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Merged over the default answer of /metadata/instance/compute: objects are merged, anything else replaces.'),
  })
  .describe('A machine that asks. Each has an endpoint of its own, because IMDS tells machines apart by who asks.')

const restartSchema = z
  .strictObject({
    atSeconds: z.number().positive().describe('When; a change at the same time is part of it.'),
    incarnation: z.int().nonnegative().default(1).describe('DocumentIncarnation from this moment on.'),
  })
  .describe('DocumentIncarnation starts again, as after 24 h without a request.')

const recordedSchema = z
  .strictObject({
    endpoint: z.string(),
    apiVersion: z.string(),
    startedAt: z.string().describe('RFC 3339 UTC of second 0.'),
  })
  .describe('Where a recording comes from. For people: replaying does not use it.')

/** A scenario file. Times are scenario seconds since the start of the simulator; its speed decides how long such a second lasts. */
export const scenarioSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'expected lower-case letters, digits and hyphens, at most 64')
      .describe('Seeds the ids of events and machines, so that they are the same in every run.'),
    description: z.string().default('').describe('What happens, in a sentence or two.'),
    recorded: recordedSchema.optional(),
    vms: z
      .array(vmSchema)
      .min(1)
      .max(100)
      .default([{ name: 'vm_0', compute: {} }])
      .describe('All of them see the same document, whatever machine an event names.'),
    incarnation: z.int().nonnegative().default(1).describe('DocumentIncarnation at second 0.'),
    events: z.array(eventSchema).optional().describe('What Azure plans. Either this or `documents`.'),
    documents: z
      .array(frameSchema)
      .nullable()
      .optional()
      .describe('Verbatim answers in order of time. Either this or `events`. null: a recording that ended before any answer.'),
    restarts: z.array(restartSchema).default([]).describe('Only beside `events`.'),
    faults: z.array(faultSchema).default([]).describe('When the endpoint misbehaves; the first that fits a request decides.'),
    endsAtSeconds: z
      .number()
      .positive()
      .optional()
      .describe('When the story is over. Default: after the last event, restart, frame and fault. The endpoint answers on.'),
  })
  .superRefine(
    (file, context) => {
      for (const { path, message } of mistakesBetweenKeys(file)) context.addIssue({ code: 'custom', path, message })
    },
    { when: () => true },
  )
  .meta({ title: 'foreshock IMDS scenario', description: 'What `foreshock simulate imds` plays.' })

type ScenarioFile = z.output<typeof scenarioSchema>
type ParsedEvent = NonNullable<ScenarioFile['events']>[number]

export type ScenarioEvent = Omit<ParsedEvent, 'id'> & { readonly id: string }
export type Vm = ScenarioFile['vms'][number]

/** A scenario as it is played: defaults and ids filled in. `documents` is null where it is played from `events`. */
export type Scenario = Omit<ScenarioFile, 'events' | 'documents'> & {
  readonly events: readonly ScenarioEvent[]
  readonly documents: readonly Frame[] | null
}

/** Gives an id to each event that has none: upper-case, as captured documents have them. */
export function completeScenario(file: ScenarioFile): Scenario {
  const idAt = (index: number): string => stableId(`${file.name} event ${index}`).toUpperCase()
  return {
    ...file,
    events: (file.events ?? []).map((event, index) => ({ ...event, id: event.id ?? idAt(index) })),
    documents: file.documents === undefined ? null : (file.documents ?? []),
  }
}

/** Runs over files with other mistakes too, so that all are told at once: nothing about the shape may be taken for granted. */
function mistakesBetweenKeys(file: unknown): { path: (string | number)[]; message: string }[] {
  const mistakes: { path: (string | number)[]; message: string }[] = []
  const events = field(file, 'events')
  const documents = field(file, 'documents')
  if ((events === undefined) === (documents === undefined)) {
    const got = events === undefined ? 'neither' : 'both'
    mistakes.push({ path: ['events'], message: `expected either events or documents, got ${got}` })
  }
  if (documents !== undefined && listOf(file, 'restarts').length > 0) {
    mistakes.push({ path: ['restarts'], message: 'expected none beside documents: verbatim answers carry their own incarnation' })
  }
  const names = listOf(file, 'vms').map((vm) => String(field(vm, 'name')).toLowerCase())
  for (const [index, name] of names.entries()) {
    if (names.indexOf(name) < index) mistakes.push({ path: ['vms', index, 'name'], message: 'expected each name once' })
  }
  let before = 0
  for (const [index, frame] of listOf(file, 'documents').entries()) {
    const at = field(frame, 'atSeconds')
    if (typeof at !== 'number') continue
    if (at < before) mistakes.push({ path: ['documents', index, 'atSeconds'], message: `expected at least ${before}, the frame before` })
    before = at
  }
  return mistakes
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}

function listOf(value: unknown, key: string): unknown[] {
  const list = field(value, key)
  return Array.isArray(list) ? list : []
}
