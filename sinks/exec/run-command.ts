import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { collect } from './output.ts'

/** How a command came to its end. */
export type Ending =
  | { readonly how: 'exited'; readonly code: number; readonly output: string }
  | { readonly how: 'killed'; readonly by: NodeJS.Signals; readonly output: string }
  /** By us: the signal of the delivery aborted. */
  | { readonly how: 'stopped'; readonly output: string }
  | { readonly how: 'not-started'; readonly code: string }

/** From SIGTERM to SIGKILL; less than the outbox waits for a sink that has been told to stop. */
const graceMs = 700

/** How long what a command has left in its pipes is read after its end. Whatever it started may keep them open for ever. */
const flushMs = 100

/**
 * Runs a command without a shell, as the head of a process group of its own, with `input` on its stdin. When `signal` aborts, the whole group gets
 * SIGTERM, and SIGKILL when it is still there after a moment. Resolves when the command has ended; never rejects but for a fault of the program.
 */
export async function runCommand(
  [file, ...args]: readonly [string, ...string[]],
  { env, input, signal }: { readonly env: Readonly<Record<string, string>>; readonly input: string; readonly signal: AbortSignal },
): Promise<Ending> {
  const started = start(file, args, env)
  if ('failed' in started) return { how: 'not-started', code: started.failed }
  const { child } = started
  const output = collect([child.stdout, child.stderr])
  // A command need not read its input.
  child.stdin.on('error', () => {})
  child.stdin.end(input)

  let killing: NodeJS.Timeout | undefined
  const stop = (): void => {
    killGroup(child, 'SIGTERM')
    killing = setTimeout(() => killGroup(child, 'SIGKILL'), graceMs)
  }
  signal.addEventListener('abort', stop, { once: true })
  try {
    const ended = await endOf(child)
    if ('failed' in ended) return { how: 'not-started', code: ended.failed }
    await flushed(child)
    if (signal.aborted) {
      // What the command has started and what ignored SIGTERM goes with it.
      killGroup(child, 'SIGKILL')
      return { how: 'stopped', output: output.text() }
    }
    if (ended.signal !== null) return { how: 'killed', by: ended.signal, output: output.text() }
    return { how: 'exited', code: ended.code ?? 0, output: output.text() }
  } finally {
    clearTimeout(killing)
    signal.removeEventListener('abort', stop)
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }
}

/** Some reasons not to start (E2BIG, ENOMEM) are thrown, the others come as an 'error' event. */
function start(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { readonly child: ChildProcessWithoutNullStreams } | { readonly failed: string } {
  try {
    return { child: spawn(file, args, { env: { ...env }, stdio: ['pipe', 'pipe', 'pipe'], detached: process.platform !== 'win32' }) }
  } catch (error) {
    if (error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string') return { failed: error.code }
    throw error
  }
}

type End = { readonly code: number | null; readonly signal: NodeJS.Signals | null } | { readonly failed: string }

function endOf(child: ChildProcess): Promise<End> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.once('error', (error) => {
      // After it has started, an error is one of killing it, and its end is still to come.
      if (child.pid !== undefined) return
      if ('code' in error && typeof error.code === 'string') resolve({ failed: error.code })
      else reject(error)
    })
  })
}

/** 'close' follows once both pipes have been read to their ends. */
async function flushed(child: ChildProcess): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, flushMs)
  child.once('close', resolve)
  await promise
  clearTimeout(timer)
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? child.pid : -child.pid, signal)
  } catch (error) {
    // Gone already.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
