import { open, type FileHandle } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from 'undici'
import { stringify } from 'yaml'
import type { SinkLog } from '../../../sinks/contract.ts'
import { ForeshockError } from '../../../sinks/error.ts'
import { firstTimeoutMs, usualTimeoutMs } from '../../imds/timeouts.ts'
import { ask, type Heard } from './ask.ts'
import { recordedFrame } from './recorded-frame.ts'
import { recordableCompute } from './recorded-instance.ts'

export interface RecorderOptions {
  /** `http://169.254.169.254`, without a path. */
  readonly endpoint: string
  readonly apiVersion: string
  /** Ends the recording. */
  readonly signal: AbortSignal
  /** File to write; it must not exist yet. */
  readonly out: string
  /** From one request to the next. */
  readonly intervalMs: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Milliseconds, monotonic; times the frames. */
  readonly clock?: () => number
  readonly log: SinkLog
}

export interface Recording {
  readonly polls: number
  readonly frames: number
}

/**
 * Writes what an endpoint answers as a scenario of verbatim frames, one for each change, failures included, until `signal` aborts.
 * Every frame is on the disk before the next request, so whatever ends the process or the machine leaves a file that can be played.
 *
 * Resource names stay: without them a recording is of no use. Of the instance metadata only what identifies the machine's place is kept, never
 * tags, user data or keys, and subscription ids become zeros. The event documents are kept byte for byte.
 *
 * Throws `usage` where `out` exists already or cannot be written.
 */
export async function recordScenario(options: RecorderOptions): Promise<Recording> {
  const { endpoint, apiVersion, signal, out, intervalMs, now = Date.now, clock = () => performance.now(), log } = options
  const origin = originOf(endpoint)
  // An Agent of its own follows neither proxies nor redirects. Without keep-alive, an idle connection that closes is no failure to record.
  const agent = new Agent({ pipelining: 0, maxResponseSize: 1_048_576 })
  try {
    const compute = await recordableCompute(agent, origin, signal)
    if (signal.aborted) return { polls: 0, frames: 0 }
    const file = await create(out)
    try {
      await append(file, head({ origin, apiVersion, startedAt: now(), compute }))
      return await recordFrames(file, (timeoutMs) => ask(agent, eventsUrl(origin, apiVersion), { timeoutMs, signal }), {
        signal,
        intervalMs,
        clock,
        log,
      })
    } finally {
      await file.close()
    }
  } finally {
    await agent.destroy()
  }
}

const eventsUrl = (origin: string, apiVersion: string): string =>
  `${origin}/metadata/scheduledevents?api-version=${encodeURIComponent(apiVersion)}`

/** Appends a frame for each answer that differs from the one before. */
async function recordFrames(
  file: FileHandle,
  poll: (timeoutMs: number) => Promise<Heard | null>,
  { signal, intervalMs, clock, log }: Required<Pick<RecorderOptions, 'signal' | 'intervalMs' | 'clock' | 'log'>>,
): Promise<Recording> {
  const startedClock = clock()
  let polls = 0
  let frames = 0
  for (let last = ''; !signal.aborted; await pause(intervalMs, signal)) {
    const heard = await poll(polls === 0 ? firstTimeoutMs : usualTimeoutMs)
    if (heard === null) break
    polls += 1
    if (fingerprint(heard) === last) continue
    last = fingerprint(heard)
    const atSeconds = Math.round(clock() - startedClock) / 1000
    await append(file, recordedFrame(heard, atSeconds))
    frames += 1
    log.info({ atSeconds, ...('noAnswer' in heard ? heard : { status: heard.status, bytes: heard.body.length }) }, 'recorded')
  }
  return { polls, frames }
}

function originOf(endpoint: string): string {
  const url = URL.parse(endpoint)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url.origin
  throw new ForeshockError('usage', `expected an endpoint like http://169.254.169.254, got ${endpoint}`)
}

async function create(out: string): Promise<FileHandle> {
  try {
    return await open(out, 'wx')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ForeshockError('usage', `expected a new file that can be written, got ${out} (${why}): choose another name`, { cause })
  }
}

/** In one write, and through to the disk: the machine may be rebooted by the very event that is being recorded. */
async function append(file: FileHandle, text: string): Promise<void> {
  await file.appendFile(text)
  await file.datasync()
}

interface Head {
  readonly origin: string
  readonly apiVersion: string
  readonly startedAt: number
  readonly compute: Record<string, unknown> | null
}

/** Everything but the frames, which follow as items of the last key; without any it is null, which a scenario allows. */
function head({ origin, apiVersion, startedAt, compute }: Head): string {
  const at = new Date(startedAt).toISOString()
  const name = typeof compute?.['name'] === 'string' && compute['name'] !== '' ? compute['name'] : null
  return [
    stringify({
      name: `recorded-${at.slice(0, 19).replaceAll(':', '-').toLowerCase()}`,
      description: `Recorded from ${origin}.`,
      recorded: { endpoint: origin, apiVersion, startedAt: at },
      ...(name !== null && { vms: [{ name, compute }] }),
    }),
    'documents:\n',
  ].join('')
}

/** Headers may differ from answer to answer; that alone is no change. */
function fingerprint(heard: Heard): string {
  return 'noAnswer' in heard ? heard.noAnswer : `${heard.status} ${heard.body.toString('base64')}`
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
