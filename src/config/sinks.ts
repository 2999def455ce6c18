import { z } from 'zod'
import type { SinkDefinition } from '../../sinks/contract.ts'
import { builtinSink, builtinSinkTypes, customSink } from '../registry.ts'
import { mistakesOf, type Mistake } from './mistake.ts'
import { commonSinkOptions, sinkDefaults, type Filter } from './schema.ts'

/** A sink of the configuration: its definition, its own options, and the common ones with every default filled in. */
export interface ConfiguredSink {
  readonly name: string
  readonly type: string
  readonly definition: SinkDefinition
  readonly options: Record<string, unknown>
  readonly filter: Filter | undefined
  readonly maxAgeSeconds: number
  readonly concurrency: number
  readonly timeoutSeconds: number
}

/** Common options and own options as one strict object: what the configuration file may say for this sink. */
export function sinkSchema(definition: SinkDefinition): z.ZodObject {
  return z.strictObject({
    ...commonSinkOptions.shape,
    type: z.literal(definition.type).describe(definition.summary),
    maxAgeSeconds: commonSinkOptions.shape.maxAgeSeconds.default(definition.defaults?.maxAgeSeconds ?? sinkDefaults.maxAgeSeconds),
    concurrency: commonSinkOptions.shape.concurrency.default(definition.defaults?.concurrency ?? sinkDefaults.concurrency),
    timeoutSeconds: commonSinkOptions.shape.timeoutSeconds.default(definition.defaults?.timeoutSeconds ?? sinkDefaults.timeoutSeconds),
    ...definition.options.shape,
  })
}

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
    const parsed = sinkSchema({ ...found.definition, type }).safeParse(entry)
    if (!parsed.success) {
      mistakes.push(...mistakesOf(parsed.error, file, path))
      continue
    }
    const sink = configuredSink(found.definition, parsed.data)
    const twin = names.get(sink.name)
    if (twin !== undefined)
      mistakes.push({ path: [...path, 'name'], message: `expected a name of its own, got "${sink.name}" as in sinks[${twin}]` })
    names.set(sink.name, index)
    sinks.push(sink)
  }
  return { sinks, mistakes }
}

function configuredSink(definition: SinkDefinition, parsed: Record<string, unknown>): ConfiguredSink {
  const common = commonSinkOptions.required({ maxAgeSeconds: true, concurrency: true, timeoutSeconds: true })
  const { name, type, format: _, filter, maxAgeSeconds, concurrency, timeoutSeconds } = z.object(common.shape).parse(parsed)
  const own = Object.keys(definition.options.shape)
  const options = Object.fromEntries(Object.entries(parsed).filter(([key]) => own.includes(key)))
  return { name, type, definition, options, filter, maxAgeSeconds, concurrency, timeoutSeconds }
}
