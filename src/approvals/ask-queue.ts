import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceBusReceivedMessage, ServiceBusReceiver } from '@azure/service-bus'
import { lineOf } from '../../sinks/azure/failures.ts'
import { ForeshockError } from '../../sinks/error.ts'
import type { ControlConfig } from '../config/approvals.ts'
import { agent } from '../version.ts'
import { openServiceBus, within, type ServiceBus } from './service-bus.ts'

const sendMs = 15_000
const closeMs = 2000
const lookMs = 200
const peekAtOnce = 50
const manual = { receiveMode: 'peekLock', maxAutoLockRenewalDurationInMs: 0 } as const

export interface QueueAsk {
  readonly control: ControlConfig
  readonly env: NodeJS.ProcessEnv
  /** The message; `contentType` says whether it is signed. */
  readonly body: Buffer
  readonly contentType: 'application/json' | 'application/jose'
  /** null: the queue has no sessions. */
  readonly sessionId: string | null
  /** The broker drops it then; milliseconds from now. */
  readonly timeToLiveMs: number
  /** How long to wait for the reply; 0 does not ask for one. */
  readonly waitMs: number
}

/** `event` is the reply; undefined where none was asked for, or none came in time. */
export interface QueueReply {
  readonly messageId: string
  readonly event?: unknown
}

/** Sends an approval to the control queue and waits for its reply. Throws `unreachable` where the broker does not take it. */
export async function askQueue(ask: QueueAsk): Promise<QueueReply> {
  const { control, env, body, contentType, sessionId, timeToLiveMs, waitMs } = ask
  const bus = await openServiceBus(control, { env, agent })
  const messageId = randomUUID()
  try {
    const replies = waitMs > 0 ? control.replies : undefined
    const mailbox = replies === undefined ? undefined : await openMailbox(bus, replies, messageId)
    await bus.client.createSender(bus.entity).sendMessages(
      {
        body,
        contentType,
        messageId,
        timeToLive: timeToLiveMs,
        ...(sessionId === null ? {} : { sessionId }),
        ...(replies === undefined ? {} : { replyTo: replies.queue, ...(replies.session ? { replyToSessionId: messageId } : {}) }),
      },
      { abortSignal: AbortSignal.timeout(sendMs) },
    )
    if (mailbox === undefined) return { messageId }
    const event = await nextReply(mailbox, messageId, Date.now() + waitMs)
    await within(closeMs, () => mailbox.close())
    return event === undefined ? { messageId } : { messageId, event }
  } catch (cause) {
    if (cause instanceof ForeshockError) throw cause
    throw new ForeshockError('unreachable', `the control queue ${bus.entity} does not take the message: ${lineOf(cause)}`, { cause })
  } finally {
    await bus.close()
  }
}

async function openMailbox(
  bus: ServiceBus,
  { queue, session }: NonNullable<ControlConfig['replies']>,
  messageId: string,
): Promise<ServiceBusReceiver> {
  if (!session) return bus.client.createReceiver(queue, manual)
  return await bus.client.acceptSession(queue, messageId, { ...manual, abortSignal: AbortSignal.timeout(sendMs) })
}

/**
 * Without sessions others wait at the same queue. Each time that theirs is received and given back counts as a delivery of it, up to the dead-letter
 * queue, so nothing is received before ours is seen to be there.
 */
async function nextReply(mailbox: ServiceBusReceiver, messageId: string, until: number): Promise<unknown> {
  const isOurs = ({ correlationId }: ServiceBusReceivedMessage): boolean => correlationId === messageId
  const others: ServiceBusReceivedMessage[] = []
  let arrived = false
  try {
    for (let left = until - Date.now(); left > 0; left = until - Date.now()) {
      const abortSignal = AbortSignal.timeout(left + sendMs)
      if (!arrived) {
        // Goes on behind what it has seen.
        const seen = await mailbox.peekMessages(peekAtOnce, { abortSignal })
        arrived = seen.some(isOurs)
        if (seen.length === 0) await sleep(Math.min(left, lookMs))
        continue
      }
      const [reply] = await mailbox.receiveMessages(1, { maxWaitTimeInMs: left, abortSignal })
      if (reply === undefined) return undefined
      if (!isOurs(reply)) {
        others.push(reply)
        continue
      }
      await mailbox.completeMessage(reply)
      const body: unknown = reply.body
      return body
    }
    return undefined
  } finally {
    for (const other of others) await mailbox.abandonMessage(other)
  }
}
