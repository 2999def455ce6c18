import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSessionReceiver } from '@azure/service-bus'
import type { ControlConfig } from '../config/approvals.ts'

/** How long one wait for a message lasts. Its end is a drain, which proves that the broker is alive. */
const waitMs = 1000
/** A wait that does not even end by then is stuck: a frozen broker says nothing. */
const stuckMs = 20_000
/** Closing waits for answers of the broker, which may never come. */
const closeMs = 3000

/** An open link to the control queue: a receiver, of one session where there are sessions. */
export interface QueueLink {
  /** Names the entity, for ids. */
  readonly entity: string
  /** At most one message, after at most a second. Rejects when the link is of no use any more. */
  receive(): Promise<ServiceBusReceivedMessage | undefined>
  complete(message: ServiceBusReceivedMessage): Promise<void>
  abandon(message: ServiceBusReceivedMessage): Promise<void>
  deadLetter(message: ServiceBusReceivedMessage, reason: string, description: string): Promise<void>
  /** Until when the message is ours; milliseconds since the epoch. null where that is the affair of the session. */
  lockedUntil(message: ServiceBusReceivedMessage): number | null
  renew(message: ServiceBusReceivedMessage): Promise<void>
  /** The lock of the session; null where there are none. */
  readonly session: { lockedUntil(): number; renew(): Promise<void> } | null
  /** Never rejects, and never takes long. */
  close(): Promise<void>
}

/**
 * Bodies are left as bytes, because size and shape are the gate's to judge. Automatic renewal is off: with it, the SDK can neither settle a message
 * without a messageId nor close.
 */
const options = { receiveMode: 'peekLock', maxAutoLockRenewalDurationInMs: 0, skipParsingBodyAsJson: true } as const

/** `sessionId` null: no sessions. */
export async function openQueueLink(
  client: ServiceBusClient,
  { queue, topic, subscription }: Pick<ControlConfig, 'queue' | 'topic' | 'subscription'>,
  sessionId: string | null,
  signal: AbortSignal,
): Promise<QueueLink> {
  if (topic !== undefined && subscription !== undefined) {
    const entity = `${topic}/Subscriptions/${subscription}`
    if (sessionId === null) return plainLink(entity, client.createReceiver(topic, subscription, options))
    return sessionLink(entity, await client.acceptSession(topic, subscription, sessionId, { ...options, abortSignal: signal }))
  }
  const entity = queue ?? ''
  if (sessionId === null) return plainLink(entity, client.createReceiver(entity, options))
  return sessionLink(entity, await client.acceptSession(entity, sessionId, { ...options, abortSignal: signal }))
}

function plainLink(entity: string, receiver: ServiceBusReceiver): QueueLink {
  return {
    ...linkOf(entity, receiver),
    lockedUntil: ({ lockedUntilUtc }) => lockedUntilUtc?.getTime() ?? null,
    renew: async (message) => void (await receiver.renewMessageLock(message)),
    session: null,
  }
}

function sessionLink(entity: string, receiver: ServiceBusSessionReceiver): QueueLink {
  return {
    ...linkOf(entity, receiver),
    lockedUntil: () => null,
    renew: async () => {},
    session: {
      lockedUntil: () => receiver.sessionLockedUntilUtc.getTime(),
      renew: async () => void (await receiver.renewSessionLock()),
    },
  }
}

function linkOf(entity: string, receiver: ServiceBusReceiver): Omit<QueueLink, 'lockedUntil' | 'renew' | 'session'> {
  return {
    entity,
    async receive() {
      const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: waitMs, abortSignal: AbortSignal.timeout(stuckMs) })
      return message
    },
    complete: (message) => receiver.completeMessage(message),
    abandon: (message) => receiver.abandonMessage(message),
    deadLetter: (message, deadLetterReason, deadLetterErrorDescription) =>
      receiver.deadLetterMessage(message, { deadLetterReason, deadLetterErrorDescription }),
    close: () => closing(() => receiver.close()),
  }
}

/** What closing throws says nothing that the operations before did not say. */
export async function closing(close: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const bound = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, closeMs)
  })
  await Promise.race([
    close().then(
      () => {},
      () => {},
    ),
    bound,
  ])
  clearTimeout(timer)
}
