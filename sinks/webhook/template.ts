import { readFile } from 'node:fs/promises'
import type { Liquid, Template } from 'liquidjs'
import { parse as parseYaml } from 'yaml'
import { z } from 'zod'
import type { CloudEvent, Json } from '../cloud-event.ts'
import { ForeshockError } from '../error.ts'
import { reporterOf } from '../formats/reporter.ts'
import { topicOf } from '../formats/topic.ts'
import { readSecret, secretSchema, type Secret } from '../secret.ts'

/** What ships, by name; bundled, so that a name needs no file. */
const shipped: Readonly<Record<string, () => Promise<{ default: unknown }>>> = {
  'event-grid': () => import('../../config/templates/event-grid.json', { with: { type: 'json' } }),
  pagerduty: () => import('../../config/templates/pagerduty.json', { with: { type: 'json' } }),
  slack: () => import('../../config/templates/slack.json', { with: { type: 'json' } }),
  'splunk-hec': () => import('../../config/templates/splunk-hec.json', { with: { type: 'json' } }),
  teams: () => import('../../config/templates/teams.json', { with: { type: 'json' } }),
}

const shippedNames = Object.keys(shipped).join(', ')

const nameSchema = z
  .string()
  .min(1)
  .refine((name) => Object.hasOwn(shipped, name) || /[./\\]/.test(name), {
    error: `expected one of ${shippedNames}, or the path of a file such as ./template.yaml`,
  })

export const templateSchema = z.union([
  nameSchema,
  z.strictObject({
    name: nameSchema.describe('Name of a template that ships, or the path of a file.'),
    values: z
      .record(z.string(), secretSchema)
      .default({})
      .describe('What the template asks for, such as `routingKey`; texts or `{ file: … }`.'),
  }),
])

/** A template as a file. `body` is the request as data; each text in it is a template of its own. */
const fileSchema = z.strictObject({
  description: z.string().optional(),
  contentType: z
    .string()
    .regex(/^[\x20-\x7e]+$/)
    .default('application/json'),
  /** What the operator has to give, and what it is. */
  values: z.record(z.string(), z.string()).default({}),
  body: z.json(),
})

/** Writes an event in the shape of a template. Throws `sink_unusable` where the template cannot be filled in. */
export interface FilledTemplate {
  readonly contentType: string
  readonly write: (event: CloudEvent) => Promise<string>
}

/** More than any shape of a 64 KiB event needs; a template that loops without end stops here. */
const limits = { parseLimit: 256 * 1024, renderLimit: 1000, memoryLimit: 10_000_000 } as const

/**
 * Loads a template and checks that it has what it asks for. Texts are Liquid, filled in one by one and then written as JSON with everything around
 * them, so no value can break out of its text; a text that is one expression alone becomes the value itself, a number or an object. The language
 * has no way to code, files or network: partial templates are taken from an empty list.
 *
 * Source: https://liquidjs.com
 */
export async function loadTemplate(option: z.output<typeof templateSchema>): Promise<FilledTemplate> {
  const { name, values } = typeof option === 'string' ? { name: option, values: {} } : option
  const { contentType, values: wanted, body } = await readTemplate(name)
  const missing = Object.keys(wanted).find((value) => !Object.hasOwn(values, value))
  if (missing !== undefined) {
    const example = `template: { name: ${name}, values: { ${missing}: … } }`
    throw new ForeshockError('sink_unusable', `the template ${name} needs the value ${missing} (${wanted[missing]}): set ${example}`)
  }
  const { Liquid } = await import('liquidjs')
  const engine = new Liquid({
    keepOutputType: true,
    strictFilters: true,
    ownPropertyOnly: true,
    templates: {},
    timezoneOffset: 0,
    ...limits,
  })
  const compiled = compile(engine, body, name)
  return {
    contentType,
    async write(event) {
      const host = reporterOf(event, null).vmName
      const scope = {
        event,
        data: event.data,
        ...topicOf(event),
        host,
        epoch: Date.parse(event.time) / 1000,
        values: await readValues(values),
      }
      const filled = fill(engine, compiled, scope, name)
      return typeof filled === 'string' && !/\bjson\b/.test(contentType) ? filled : JSON.stringify(filled)
    },
  }
}

async function readTemplate(name: string): Promise<z.output<typeof fileSchema>> {
  const load = Object.hasOwn(shipped, name) ? shipped[name] : undefined
  const parsed = fileSchema.safeParse(load === undefined ? await readTemplateFile(name) : (await load()).default)
  if (parsed.success) return parsed.data
  const problem = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the whole'}: ${issue.message}`).join('; ')
  throw new ForeshockError('sink_unusable', `the template ${name} is not { description, contentType, values, body }: ${problem}`)
}

/** YAML, of which JSON is a part. */
async function readTemplateFile(path: string): Promise<unknown> {
  try {
    return parseYaml(await readFile(path, 'utf8'))
  } catch (cause) {
    const why = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
    throw new ForeshockError('sink_unusable', `the template ${path} cannot be read: ${why}`, { cause })
  }
}

async function readValues(values: Readonly<Record<string, Secret>>): Promise<Record<string, string>> {
  const read: Record<string, string> = {}
  for (const [name, secret] of Object.entries(values)) read[name] = await readSecret(secret)
  return read
}

/** The body with each text parsed; what is no text stays. */
type Compiled =
  | { readonly text: Template[] }
  | { readonly value: Json }
  | { readonly list: Compiled[] }
  | { readonly fields: [string, Compiled][] }

function compile(engine: Liquid, body: Json, name: string): Compiled {
  if (typeof body === 'string') {
    try {
      return { text: engine.parse(body) }
    } catch (cause) {
      throw unusable(name, cause)
    }
  }
  if (typeof body !== 'object' || body === null) return { value: body }
  if (isList(body)) return { list: body.map((part) => compile(engine, part, name)) }
  return { fields: Object.entries(body).map(([key, part]) => [key, compile(engine, part ?? null, name)]) }
}

function fill(engine: Liquid, compiled: Compiled, scope: object, name: string): Json {
  if ('value' in compiled) return compiled.value
  if ('list' in compiled) return compiled.list.map((part) => fill(engine, part, scope, name))
  if ('fields' in compiled) return Object.fromEntries(compiled.fields.map(([key, part]) => [key, fill(engine, part, scope, name)]))
  try {
    const filled: unknown = engine.renderSync(compiled.text, scope)
    return z.json().parse(filled ?? null)
  } catch (cause) {
    throw unusable(name, cause)
  }
}

/** The message of the engine quotes the template, never what was filled in. */
function unusable(name: string, cause: unknown): ForeshockError {
  const why = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
  return new ForeshockError('sink_unusable', `the template ${name} cannot be filled in: ${why}`, { cause })
}

const isList = (value: object): value is readonly Json[] => Array.isArray(value)
