import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { ForeshockError } from '../../../sinks/error.ts'
import { mistakesOf, pathText } from '../../config/mistake.ts'
import { readYaml } from '../../config/yaml.ts'
import { completeScenario, scenarioSchema, type Scenario } from './scenario.ts'

/** A ready scenario that ships with foreshock. */
export interface ReadyScenario {
  readonly name: string
  readonly description: string
}

/**
 * A ready scenario by its name, or a scenario file by its path. What looks like a path (a separator, or the ending .yaml, .yml or .json)
 * is one. Throws `usage` where there is none, `scenario_invalid` where its content is wrong.
 */
export async function loadScenario(nameOrFile: string): Promise<Scenario> {
  if (/[/\\]|\.(ya?ml|json)$/i.test(nameOrFile)) return parseScenario(await readScenario(resolve(nameOrFile)), nameOrFile)
  const folder = await scenarioFolder()
  const names = await scenarioNames(folder)
  if (!names.includes(nameOrFile)) {
    throw new ForeshockError('usage', `expected a scenario file or one of ${names.join(', ')}, got ${nameOrFile}`)
  }
  const file = join(folder, `${nameOrFile}.yaml`)
  return parseScenario(await readScenario(file), file)
}

/** The ready scenarios, by name. */
export async function readyScenarios(): Promise<ReadyScenario[]> {
  const loaded = await Promise.all((await scenarioNames(await scenarioFolder())).map(loadScenario))
  return loaded.map(({ name, description }) => ({ name, description }))
}

/** `text` is YAML, of which JSON is a part. Throws `scenario_invalid` with every mistake: path, what was expected, what came. */
export function parseScenario(text: string, file: string): Scenario {
  const yaml = readYaml(text)
  if (!yaml.ok) throw invalid(file, yaml.mistakes)
  const written = yaml.value
  const parsed = scenarioSchema.safeParse(written)
  if (parsed.success) return completeScenario(parsed.data)
  throw invalid(
    file,
    mistakesOf(parsed.error, written).map((mistake) => `${pathText(mistake.path)}: ${mistake.message}`),
  )
}

/** The JSON Schema (draft 2020-12) of a scenario file, as published in config/schemas/scenario.json. */
export function scenarioJsonSchema(): z.core.JSONSchema.JSONSchema {
  return { $id: 'https://foreshock.dev/schemas/scenario.json', ...z.toJSONSchema(scenarioSchema, { io: 'input' }) }
}

function invalid(file: string, mistakes: readonly string[]): ForeshockError {
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`
  return new ForeshockError('scenario_invalid', [`${count} in the scenario ${file}:`, ...mistakes.map((line) => `  ${line}`)].join('\n'))
}

async function readScenario(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ForeshockError('usage', `the scenario file ${path} cannot be read: ${why}`, { cause })
  }
}

async function scenarioNames(folder: string): Promise<string[]> {
  const files = await readdir(folder)
  return files
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length))
    .toSorted()
}

/** The sources, dist/ and its chunks lie at different depths below the folder that holds config/. */
async function scenarioFolder(): Promise<string> {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const candidate = join(folder, 'config', 'scenarios')
    if (await isFolder(candidate)) return candidate
    if (dirname(folder) === folder) break
  }
  throw new ForeshockError(
    'usage',
    `expected config/scenarios in a folder above ${import.meta.dirname}: install foreshock whole, or name a file`,
  )
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(absent))?.isDirectory() ?? false
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
