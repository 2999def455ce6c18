import { delivered, type CheckResult, type DeliveryOutcome, type Sink } from '../contract.ts'
import { ForeshockError } from '../error.ts'
import { interrupted, untilAborted } from '../interrupted.ts'
import { lineOf, meaningOf, waitOf } from './failures.ts'
import type { Line } from './line.ts'
import type { WarmLink } from './warm-link.ts'

/** A sink over a link. `where` names the entity for people. */
export function sinkOver(link: WarmLink, where: string): Sink {
  return {
    async deliver(event, { signal }) {
      const line = await untilAborted(signal, () => openLineOf(link))
      if ('status' in line) return line
      // Whoever waited for the line is told by now that time is up: it must not be sent behind their back.
      if (signal.aborted) return interrupted(signal)
      try {
        await line.send(event, signal)
        return delivered
      } catch (error) {
        return signal.aborted ? interrupted(signal) : outcomeOf(error, 'sending')
      }
    },
    async check({ signal }): Promise<CheckResult> {
      const late = Promise.withResolvers<CheckResult>()
      const onAbort = (): void => late.resolve({ ok: false, detail: `${where} did not answer within the time limit`, cure: slow })
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        if (signal.aborted) onAbort()
        return await Promise.race([late.promise, attached(link, where)])
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    },
    close: () => link.close(),
  }
}

async function openLineOf(link: WarmLink): Promise<Line | DeliveryOutcome> {
  try {
    return await link.ready()
  } catch (error) {
    return outcomeOf(error, 'opening')
  }
}

const slow = 'check DNS and the firewall: port 5671 for AMQP, 443 for transport: websockets'

/** A sender link is opened only for who may send, and leaves nothing behind. */
async function attached(link: WarmLink, where: string): Promise<CheckResult> {
  try {
    const line = await link.ready()
    if (!(await line.isOpen())) {
      line.lose(new ForeshockError('unreachable', 'the link was detached by the broker'))
      await link.ready()
    }
    return { ok: true, detail: `may send to ${where}` }
  } catch (error) {
    return { ok: false, detail: `${where}: ${lineOf(error)}`, cure: meaningOf(error).cure }
  }
}

/** What stands in the way of opening a link concerns every event, so no event is given up for it. */
function outcomeOf(error: unknown, doing: 'opening' | 'sending'): DeliveryOutcome {
  const { means, code, cure } = meaningOf(error)
  const detail = lineOf(error)
  if (means === 'rejected') {
    if (doing === 'sending') return { status: 'rejected', code, detail }
    return { status: 'retry', because: 'refused', code, detail: `${detail}: ${cure}` }
  }
  const retryAfterMs = means === 'throttled' ? waitOf(error) : undefined
  return {
    status: 'retry',
    because: means,
    code,
    detail: means === 'refused' ? `${detail}: ${cure}` : detail,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}
