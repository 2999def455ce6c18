import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Running {
  readonly pid: number
  stop(): Promise<void>
}

const root = join(import.meta.dirname, '..')

/** Starts the built forwarder with this configuration, its state on a real disk. */
export async function startForwarder(config: Record<string, unknown>): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'foreshock-bench-'))
  const file = join(folder, 'config.json')
  await writeFile(
    file,
    JSON.stringify({
      state: { path: join(folder, 'state.db') },
      admin: { listen: '127.0.0.1:0' },
      heartbeat: { intervalSeconds: 0 },
      log: { level: 'error' },
      ...config,
    }),
  )
  const running = started(
    spawn(process.execPath, [join(root, 'dist/foreshock.mjs'), 'run', '--config', file], { stdio: ['ignore', 'ignore', 'inherit'] }),
  )
  return {
    ...running,
    async stop() {
      await running.stop()
      await rm(folder, { recursive: true })
    },
  }
}

export function startBarePoller(url: string): Running {
  return started(spawn(process.execPath, [join(import.meta.dirname, 'bare-poller.mjs'), url], { stdio: 'inherit' }))
}

export function startBareReceiver(connectionString: string, queue: string, imds: string, first: 'read' | 'post'): Running {
  const script = join(import.meta.dirname, 'bare-receiver.ts')
  return started(spawn(process.execPath, [script, connectionString, queue, imds, first], { stdio: 'inherit' }))
}

export function startBareForwarder(entity: string, connectionString: string, imds: string, file: string): Running {
  const script = join(import.meta.dirname, 'bare-forwarder.ts')
  return started(spawn(process.execPath, [script, entity, connectionString, imds, file], { stdio: 'inherit' }))
}

export function startBareBacklog(
  entity: string,
  connectionString: string,
  { count, concurrency }: { readonly count: number; readonly concurrency: number },
): Running {
  const script = join(import.meta.dirname, 'bare-backlog.ts')
  return started(spawn(process.execPath, [script, entity, connectionString, `${count}`, `${concurrency}`], { stdio: 'inherit' }))
}

export function startIdleSenders(connectionString: string, entities: readonly string[]): Running {
  return started(
    spawn(process.execPath, [join(import.meta.dirname, 'idle-senders.ts'), connectionString, ...entities], { stdio: 'inherit' }),
  )
}

function started(child: ChildProcess): Running {
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Resident memory in MB and CPU time in ms so far, over all threads. Source: proc(5), /proc/[pid]/status and schedstat. */
export async function usage(pid: number): Promise<{ megabytes: number; cpuMs: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const tasks = await readdir(`/proc/${pid}/task`)
  const times = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8')))
  return {
    megabytes: (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6,
    cpuMs: times.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0),
  }
}
