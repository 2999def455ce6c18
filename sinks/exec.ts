import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { z } from 'zod'
import type { CloudEvent } from './cloud-event.ts'
import { defineSink, delivered, type CheckResult, type DeliveryOutcome, type Sink, type SinkContext } from './contract.ts'
import { structuredJson } from './encodings/structured.ts'
import { ForeshockError } from './error.ts'
import { runCommand, type Ending } from './exec/run-command.ts'
import { defaultPath, variablesOf } from './exec/variables.ts'
import { interrupted } from './interrupted.ts'
import { readSecret, secretSchema, type Secret } from './secret.ts'

const withoutNul = (text: string): boolean => !text.includes('\0')
const noNul = 'expected a text without NUL characters'

const options = z.strictObject({
  command: z
    .tuple([z.string().min(1).refine(withoutNul, noNul)], z.string().refine(withoutNul, noNul))
    .describe('Program and arguments, each an entry of its own. No shell reads them; a program without a slash is looked for in PATH.'),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable: letters, digits, underscores'), secretSchema)
    .default({})
    .describe('Variables to add; each a text or `{ file: … }`, read anew at each run.'),
})
type ExecOptions = z.output<typeof options>

/** EX_TEMPFAIL of sysexits.h: the command asks to be run again. */
const temporary = 75

/** What keeps the kernel from starting a program: a shortage passes, anything else has to be mended. */
const shortages = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ETXTBSY'])

export default defineSink({
  type: 'exec',
  summary: 'Runs a local command with the event on stdin',
  options,
  open: async (given, context) => execSink(given, context),
})

function execSink({ command, env }: ExecOptions, context: SinkContext): Sink {
  const [file] = command
  const closing = new AbortController()
  const running = new Set<Promise<Ending>>()

  const run = async (event: CloudEvent, signal: AbortSignal): Promise<Ending> => {
    const given = await readVariables(env)
    const run = runCommand(command, {
      env: variablesOf(event, context.env, given),
      input: structuredJson(event) + '\n',
      signal: AbortSignal.any([signal, closing.signal]),
    })
    running.add(run)
    try {
      const ending = await run
      if ('output' in ending) {
        const told = { command: file, ...ending, output: masked(ending.output, Object.values(given)) }
        if (ending.how === 'exited' && ending.code === 0) context.log.debug(told, 'the command has done its work')
        else context.log.warn(told, 'the command has not done its work')
      }
      return ending
    } finally {
      running.delete(run)
    }
  }

  return {
    async deliver(event, { signal }): Promise<DeliveryOutcome> {
      if (signal.aborted) return interrupted(signal)
      if (closing.signal.aborted) return { status: 'retry', because: 'transient', code: 'closed', detail: 'the sink is closed' }
      try {
        const ending = await run(event, signal)
        if (ending.how === 'stopped' && signal.aborted) return stopped(file, signal)
        return outcomeOf(ending, file)
      } catch (error) {
        if (!(error instanceof ForeshockError)) throw error
        return { status: 'retry', because: 'refused', code: error.code, detail: error.message }
      }
    },
    async check() {
      try {
        const given = await readVariables(env)
        return await checkCommand(file, given['PATH'] ?? context.env['PATH'] ?? defaultPath)
      } catch (error) {
        if (!(error instanceof ForeshockError)) throw error
        return { ok: false, detail: error.message, cure: 'correct `env`' }
      }
    },
    async close() {
      closing.abort()
      await Promise.all(running)
    },
  }
}

function outcomeOf(ending: Ending, file: string): DeliveryOutcome {
  if (ending.how === 'exited') {
    if (ending.code === 0) return delivered
    const detail = `${file} exited with ${ending.code}`
    if (ending.code === temporary) {
      return { status: 'retry', because: 'transient', code: 'exit_75', detail: `${detail}: it asks to be run again` }
    }
    return { status: 'rejected', code: `exit_${ending.code}`, detail: `${detail}; 0 is delivered, 75 tries again` }
  }
  if (ending.how === 'killed') {
    return { status: 'rejected', code: ending.by.toLowerCase(), detail: `${file} was ended by ${ending.by}` }
  }
  if (ending.how === 'stopped') return { status: 'retry', because: 'transient', code: 'closed', detail: 'the sink was closed meanwhile' }
  const because = shortages.has(ending.code) ? 'transient' : 'refused'
  const cure = because === 'refused' ? ': check that it exists and may be executed' : ''
  return { status: 'retry', because, code: ending.code.toLowerCase(), detail: `${file} cannot be started (${ending.code})${cure}` }
}

function stopped(file: string, signal: AbortSignal): DeliveryOutcome {
  const outcome = interrupted(signal)
  return outcome.status === 'retry' && outcome.code === 'timeout'
    ? { ...outcome, detail: `${file} did not end within the time limit, and was stopped with everything it had started` }
    : outcome
}

async function readVariables(env: Readonly<Record<string, Secret>>): Promise<Record<string, string>> {
  const read: Record<string, string> = {}
  for (const [name, secret] of Object.entries(env)) {
    const value = await readSecret(secret)
    if (!withoutNul(value)) throw new ForeshockError('config_invalid', `env.${name}: ${noNul}`)
    read[name] = value
  }
  return read
}

/** A command may print what it was given. Very short values would mask everything, and are no secrets. */
function masked(output: string, secrets: readonly string[]): string {
  return secrets.filter((secret) => secret.length >= 4).reduce((text, secret) => text.replaceAll(secret, '***'), output)
}

/** Whether there is such a program, without running it. */
async function checkCommand(file: string, path: string): Promise<CheckResult> {
  const places = isAbsolute(file) || file.includes('/') ? [file] : path.split(delimiter).map((folder) => join(folder, file))
  const found = await Promise.all(places.map(isProgram))
  const first = places.find((_, index) => found[index])
  if (first !== undefined) return { ok: true, detail: `${first} can be executed` }
  return {
    ok: false,
    detail: `${file} is no program that may be executed`,
    cure: 'correct `command`, or give the right to execute it (chmod +x)',
  }
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}
