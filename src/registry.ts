import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { SinkDefinition } from '../sinks/contract.ts'
import { resolveForImport } from './resolve-for-import.ts'

export { eventFormat } from '../sinks/formats/event-format.ts'

/** Every sink that ships with the program. A definition is loaded only when it is configured; heavy SDKs only when it is opened. */
const builtins: Readonly<Record<string, () => Promise<{ default: unknown }>>> = {
  'event-hubs': () => import('../sinks/event-hubs.ts'),
  exec: () => import('../sinks/exec.ts'),
  file: () => import('../sinks/file.ts'),
  'log-analytics': () => import('../sinks/log-analytics.ts'),
  'service-bus': () => import('../sinks/service-bus.ts'),
  stdout: () => import('../sinks/stdout.ts'),
  webhook: () => import('../sinks/webhook.ts'),
}

export const builtinSinkTypes: readonly string[] = Object.keys(builtins)

/** What makes a module's default export a sink; its options are checked by the schema that it brings itself. */
const definitionSchema = z.custom<SinkDefinition>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    typeof Reflect.get(value, 'type') === 'string' &&
    typeof Reflect.get(value, 'open') === 'function' &&
    typeof Reflect.get(Object(Reflect.get(value, 'options')), 'shape') === 'object',
)

export async function builtinSink(type: string): Promise<SinkDefinition> {
  const module = await builtins[type]?.()
  return definitionSchema.parse(module?.default)
}

/**
 * A sink from outside: a path to a module (relative to `folder`) or a package name, resolved from `folder` and then from here.
 * Gives the problem as one line when there is none or it is no sink.
 */
export async function customSink(type: string, folder: string): Promise<{ definition: SinkDefinition } | { problem: string }> {
  let file: string | undefined
  let module: { default?: unknown }
  try {
    file = locate(type, folder)
    if (file === undefined) {
      return {
        problem: `expected one of ${builtinSinkTypes.join(', ')}, or the name of an installed package, or a path to a module, got "${type}"`,
      }
    }
    module = await import(pathToFileURL(file).href)
  } catch (error) {
    return { problem: `the module ${file ?? type} cannot be loaded: ${error instanceof Error ? error.message : String(error)}` }
  }
  const parsed = definitionSchema.safeParse(module.default)
  if (!parsed.success) {
    return {
      problem: `expected the default export of ${file} to be a sink definition { type, summary, options (a zod object), open }: see sinks/README.md`,
    }
  }
  return { definition: parsed.data }
}

function locate(type: string, folder: string): string | undefined {
  if (type.startsWith('.') || isAbsolute(type)) return resolve(folder, type)
  return resolveForImport(type, folder) ?? resolveForImport(type, import.meta.dirname)
}
