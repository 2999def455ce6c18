import { z } from 'zod'
import type { FormatName, SinkDefinition } from '../../sinks/contract.ts'
import { builtinSink, builtinSinkTypes, customSink } from '../registry.ts'
import { mistakesOf, type Mistake } from './mistake.ts'
import { commonSinkOptions, sinkDefaults, type Filter } from './schema.ts'

/** A sink of the configuration: its definition, its own options, and the common ones with every default filled in. */
export interface ConfiguredSink {
  readonly name: string
  readonly type: string
  readonly definition: SinkDefinition
  readonly options: Record<string, unknown>
  readonly format: FormatName
  readonly filter: Filter | undefined
  readonly maxAgeSeconds: number
  readonly concurrency: number
  readonly timeoutSeconds: number
}

/** Common options and own options as one strict object: what the configuration file may say for this sink, for its JSON Schema. */
export function sinkSchema(definition: SinkDefinition): z.ZodObject {
  return z.strictObject({
    ...commonSinkOptions.shape,
    type: z.literal(definition.type).describe(definition.summary),
    format: z
      .enum(formatsOf(definition))
      .default('cloudevents')
      .describe(commonSinkOptions.shape.format.description ?? ''),
    maxAgeSeconds: commonSinkOptions.shape.maxAgeSeconds.default(definition.defaults?.maxAgeSeconds ?? sinkDefaults.maxAgeSeconds),
    concurrency: commonSinkOptions.shape.concurrency.default(definition.defaults?.concurrency ?? sinkDefaults.concurrency),
    timeoutSeconds: commonSinkOptions.shape.timeoutSeconds.default(definition.defaults?.timeoutSeconds ?? sinkDefaults.timeoutSeconds),
    ...definition.options.shape,
  })
}

const formatsOf = ({ formats }: SinkDefinition): readonly FormatName[] => formats ?? ['cloudevents']

/**
 * Loads the definition of each configured sink and validates its options.
 * `file` is the configuration as written, for messages; `folder` is where relative paths of custom modules start.
 */
export async function configureSinks(
  entries: readonly unknown[],
  file: unknown,
  folder: string,
): Promise<{ sinks: ConfiguredSink[]; mistakes: Mistake[] }> {
  const sinks: ConfiguredSink[] = []
  const mistakes: Mistake[] = []
  const names = new Map<string, number>()
  for (const [index, entry] of entries.entries()) {
    const path = ['sinks', index]
    const typed = z.looseObject({ type: commonSinkOptions.shape.type }).safeParse(entry)
    if (!typed.success) {
      mistakes.push(...mistakesOf(typed.error, file, path))
      continue
    }
    const { type } = typed.data
    const found = builtinSinkTypes.includes(type) ? { definition: await builtinSink(type) } : await customSink(type, folder)
    if ('problem' in found) {
      mistakes.push({ path: [...path, 'type'], message: found.problem })
      continue
    }
    const sink = configureSink(found.definition, typed.data)
    if (Array.isArray(sink)) {
      mistakes.push(...sink.flatMap((error) => mistakesOf(error, file, path)))
      continue
    }
    const twin = names.get(sink.name)
    if (twin !== undefined)
      mistakes.push({ path: [...path, 'name'], message: `expected a name of its own, got "${sink.name}" as in sinks[${twin}]` })
    names.set(sink.name, index)
    sinks.push(sink)
  }
  return { sinks, mistakes }
}

/** Each part is judged by its own schema, rules across options included; what is no common option must be one of the sink's own. */
function configureSink(definition: SinkDefinition, entry: Record<string, unknown>): ConfiguredSink | z.ZodError[] {
  const part = (wanted: boolean) =>
    Object.fromEntries(Object.entries(entry).filter(([key]) => Object.hasOwn(commonSinkOptions.shape, key) === wanted))
  const common = commonSinkOptions.extend({ format: z.enum(formatsOf(definition)).default('cloudevents') }).safeParse(part(true))
  const own = definition.options.safeParse(part(false))
  if (!common.success || !own.success) return [common.error, own.error].filter((error) => error !== undefined)
  const { name, type, format, filter } = common.data
  const ownBody = format === 'cloudevents' ? undefined : definition.ownBody?.(own.data)
  if (ownBody !== undefined) {
    const message = `\`format: ${format}\` and \`${ownBody}\` exclude each other: each decides the whole body; leave out one`
    return [new z.ZodError([{ code: 'custom', path: ['format'], message, input: format }])]
  }
  const limits = { ...sinkDefaults, ...definition.defaults, ...common.data }
  return {
    name,
    type,
    definition,
    options: own.data,
    format,
    filter,
    maxAgeSeconds: limits.maxAgeSeconds ?? sinkDefaults.maxAgeSeconds,
    concurrency: limits.concurrency ?? sinkDefaults.concurrency,
    timeoutSeconds: limits.timeoutSeconds ?? sinkDefaults.timeoutSeconds,
  }
}
