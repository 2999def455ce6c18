import type { SinkLog } from '../contract.ts'
import { ForeshockError } from '../error.ts'
import type { Dial } from './carrier.ts'
import { lineOf, meaningOf } from './failures.ts'
import { openLine, type Connect, type Line } from './line.ts'

export interface WarmLinkOptions {
  /** Called for each connection: settings that were rotated take effect with the next. */
  readonly plan: () => Promise<{ readonly connect: Connect; readonly dial: Dial }>
  readonly log: SinkLog
  /** A number in [0, 1). */
  readonly random?: () => number
}

export interface WarmLink {
  /** The open line; opens one, together with whoever else waits for it, where there is none. Rejects with why that failed. */
  ready(): Promise<Line>
  /** Idempotent. */
  close(): Promise<void>
}

const openMs = 30_000
/** How often the link is looked at. Azure detaches one that was idle for ten minutes, which no SDK tells. */
const lookMs = 1000
/** A line that lived so long was sound: its loss is mended at once. */
const soundMs = 5_000
const firstPauseMs = 250
const longestPauseMs = 30_000

/**
 * Keeps a line open, so that an event need not wait for one: opened at the start and again after each loss, in the background.
 *
 * none -> opening -> open -> lost -> (pause) -> opening ...; an opening that fails goes to the pause as well. `ready` cuts the pause short. The
 * pause doubles while lines fail or die young, with full jitter, because all VMs of a scale set lose a broker at the same moment.
 */
export function createWarmLink({ plan, log, random = Math.random }: WarmLinkOptions): WarmLink {
  const closing = new AbortController()
  let current: Promise<Line> | undefined
  let failures = 0
  let down = false
  let pause: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined
  let closed: Promise<void> | undefined

  function ready(): Promise<Line> {
    if (closing.signal.aborted) return Promise.reject(new ForeshockError('sink_unusable', 'the sink is closed'))
    clearTimeout(pause)
    return (current ??= open())
  }

  async function open(): Promise<Line> {
    let line: Line
    let gone = false
    const openedAt = performance.now()
    const onLost = (reason: Error): void => {
      gone = true
      clearInterval(looking)
      current = undefined
      failures = performance.now() - openedAt >= soundMs ? 0 : failures + 1
      log.debug({ detail: lineOf(reason) }, 'the link was lost')
      reopen()
    }
    const opening = new AbortController()
    const stop = (): void => opening.abort()
    const deadline = setTimeout(stop, openMs)
    closing.signal.addEventListener('abort', stop, { once: true })
    try {
      const { connect, dial } = await plan()
      line = await openLine({ connect, dial, signal: opening.signal, onLost })
    } catch (error) {
      current = undefined
      failures += 1
      if (!down && !closing.signal.aborted) {
        const { code, cure } = meaningOf(error)
        log.warn({ code, detail: lineOf(error), cure }, 'the broker cannot be reached; it is tried again in the background')
      }
      down = true
      reopen()
      throw error
    } finally {
      clearTimeout(deadline)
      closing.signal.removeEventListener('abort', stop)
    }
    if (down) log.info({}, 'the broker is reached again')
    down = false
    if (!gone) looking = setInterval(() => void look(line), lookMs)
    return line
  }

  function reopen(): void {
    clearTimeout(pause)
    if (closing.signal.aborted) return
    const longest = failures === 0 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures - 1, 30))
    // Why it fails is told by `open`, and to whoever asks for the line meanwhile.
    pause = setTimeout(() => void ready().catch(() => {}), longest * random())
  }

  async function shutDown(): Promise<void> {
    closing.abort()
    clearTimeout(pause)
    const [line] = await Promise.allSettled([current])
    if (line.status === 'fulfilled') await line.value?.close()
  }

  void ready().catch(() => {})
  return { ready, close: () => (closed ??= shutDown()) }
}

async function look(line: Line): Promise<void> {
  if (!(await line.isOpen())) line.lose(new ForeshockError('unreachable', 'the link was detached by the broker'))
}
