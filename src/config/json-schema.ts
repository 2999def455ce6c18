import { z } from 'zod'
import { builtinSink, builtinSinkTypes } from '../registry.ts'
import { commonSinkOptions, configSchema } from './schema.ts'
import { sinkSchema } from './sinks.ts'

/** The JSON Schema (draft 2020-12) of the configuration file, every shipped sink included: what editors complete and check against. */
export async function configJsonSchema(): Promise<z.core.JSONSchema.JSONSchema> {
  const shipped = await Promise.all(builtinSinkTypes.map(async (type) => sinkSchema(await builtinSink(type))))
  const custom = z
    .looseObject({ ...commonSinkOptions.shape, type: z.string().regex(new RegExp(`^(?!(${builtinSinkTypes.join('|')})$)`)) })
    .describe('A sink of your own: its options are checked by the schema that it brings.')
  const whole = configSchema.extend({
    sinks: z
      .array(z.union([...shipped, custom]))
      .optional()
      .describe(configSchema.shape.sinks.description ?? ''),
  })
  return { $id: 'https://foreshock.dev/schemas/config.json', title: 'foreshock configuration', ...z.toJSONSchema(whole, { io: 'input' }) }
}
