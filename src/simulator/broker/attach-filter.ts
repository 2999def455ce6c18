import type { link as Link } from 'rhea'
import { recordOf } from './message.ts'

/** What a receiving link asks for in the filter of its source and in its properties. */
export interface ReceiverWishes {
  /** Undefined where no session is asked for, null for the next one that is free. */
  readonly session: string | null | undefined
  /** How long to wait for a free session, in milliseconds. */
  readonly timeoutMs: number
  /** The selector of an Event Hubs consumer; null without one. */
  readonly selector: string | null
  readonly epoch: number | null
  readonly receiverName: string | null
  /** Wants to be told the end of the partition with each event. */
  readonly metrics: boolean
}

const sessionFilter = 'com.microsoft:session-filter'
const selectorFilter = 'apache.org:selector-filter:string'
/** What Azure waits when the client names no time. */
const defaultTimeoutMs = 60_000

export function readWishes(link: Link): ReceiverWishes {
  const filter = recordOf(recordOf(link.source)['filter'])
  const properties = recordOf(link.properties)
  const session = Object.hasOwn(filter, sessionFilter) ? plain(filter[sessionFilter]) : undefined
  const selector = plain(filter[selectorFilter])
  const timeout = plain(properties['com.microsoft:timeout'])
  const epoch = plain(properties['com.microsoft:epoch'])
  const name = plain(properties['com.microsoft:receiver-name'])
  const capabilities: unknown = link.desired_capabilities
  return {
    session: session === undefined || typeof session === 'string' ? session : null,
    timeoutMs: typeof timeout === 'number' ? timeout : defaultTimeoutMs,
    selector: typeof selector === 'string' ? selector : null,
    epoch: typeof epoch === 'number' ? epoch : null,
    receiverName: typeof name === 'string' ? name : null,
    metrics: [capabilities].flat().includes('com.microsoft:enable-receiver-runtime-metric'),
  }
}

/** The filter that tells a client which session it got. */
export function grantedFilter(sessionId: string): Record<string, string> {
  return { [sessionFilter]: sessionId }
}

/** The date as .NET counts it: 100 ns since the year 1, as a 64-bit integer. */
export function dotnetTicks(milliseconds: number): Buffer {
  const ticks = Buffer.alloc(8)
  ticks.writeBigInt64BE(BigInt(Math.round(milliseconds)) * 10_000n + 621_355_968_000_000_000n)
  return ticks
}

/** The value inside a described or typed one. */
function plain(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'value' in value ? plain(value.value) : value
}
