import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ForeshockError } from '../../sinks/error.ts'
import { interpolate } from './interpolate.ts'
import { mistakesOf, pathText, type Mistake } from './mistake.ts'
import { approvalMistakes } from './approvals.ts'
import { configSchema, type ConfigFile } from './schema.ts'
import { configureSinks, type ConfiguredSink } from './sinks.ts'
import { readYaml } from './yaml.ts'

/** The whole configuration, validated, with every default filled in. */
export interface Config extends Omit<ConfigFile, 'sinks'> {
  readonly sinks: readonly ConfiguredSink[]
  /** Where it came from; null for the built-in defaults. */
  readonly file: string | null
}

const defaultFile = '/etc/foreshock/config.yaml'

/**
 * Precedence: the argument, else FORESHOCK_CONFIG, else /etc/foreshock/config.yaml where it exists, else the defaults: IMDS and the `stdout` sink.
 * Throws `config_invalid` with every mistake at once, one line each: path, what was expected, what came.
 */
export async function loadConfig(argument: string | undefined, env: NodeJS.ProcessEnv): Promise<Config> {
  const named = argument ?? (env['FORESHOCK_CONFIG'] || undefined)
  const text = await readConfigFile(named)
  return parseConfig(text ?? '{}', { env, file: text === undefined ? null : resolve(named ?? defaultFile) })
}

/** Parses the text of a configuration file; YAML, of which JSON is a part. */
export async function parseConfig(text: string, { env, file }: { env: NodeJS.ProcessEnv; file: string | null }): Promise<Config> {
  const yaml = readYaml(text)
  if (!yaml.ok) throw invalid(file, yaml.mistakes)
  // An empty file means all defaults, as no file does.
  const written: unknown = yaml.value ?? {}
  const filled = interpolate(written, env)
  const parsed = configSchema.safeParse(filled.value)
  const mistakes = [...filled.mistakes]
  if (!parsed.success) mistakes.push(...mistakesOf(parsed.error, written))
  const entries = parsed.success ? parsed.data.sinks : sinksOf(filled.value)
  const configured = await configureSinks(entries, written, file === null ? process.cwd() : dirname(file))
  if (parsed.success) mistakes.push(...approvalMistakes(parsed.data, namesOf(entries)))
  // A variable that is not set was told already: what its emptiness breaks is not a second mistake.
  const told = new Set(filled.mistakes.map((mistake) => pathText(mistake.path)))
  mistakes.push(...configured.mistakes)
  const distinct = mistakes.filter((mistake) => filled.mistakes.includes(mistake) || !told.has(pathText(mistake.path)))
  if (distinct.length > 0 || !parsed.success) throw invalid(file, distinct.map(lineOf))
  return { ...parsed.data, sinks: configured.sinks, file }
}

async function readConfigFile(named: string | undefined): Promise<string | undefined> {
  try {
    return await readFile(named ?? defaultFile, 'utf8')
  } catch (cause) {
    if (named === undefined && cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ForeshockError('config_invalid', `the configuration file ${named ?? defaultFile} cannot be read: ${why}`, { cause })
  }
}

/** The sinks as they are when something else in the file is wrong, so that every mistake is told at once. */
function sinksOf(value: unknown): unknown[] {
  const sinks: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'sinks') : undefined
  return Array.isArray(sinks) ? sinks : []
}

/** Also of those that have mistakes of their own: what names them is no second mistake. */
const namesOf = (entries: readonly unknown[]): string[] =>
  entries.flatMap((entry) => {
    const name: unknown = typeof entry === 'object' && entry !== null ? Reflect.get(entry, 'name') : undefined
    return typeof name === 'string' ? [name] : []
  })

const lineOf = ({ path, message }: Mistake): string => `${pathText(path)}: ${message}`

function invalid(file: string | null, mistakes: readonly string[]): ForeshockError {
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`
  const lines = mistakes.map((mistake) => `  ${mistake}`)
  return new ForeshockError('config_invalid', [`${count} in ${file ?? 'the configuration'}:`, ...lines].join('\n'))
}
