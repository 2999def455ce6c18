import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSessionReceiver } from '@azure/service-bus'
import type { ControlConfig } from '../config/approvals.ts'

/** Proof that the entity is there and lets us listen. */
const proofMs = 10_000
/** A session receiver that lost its link says so to nobody. */
const lookMs = 1000
/** Closing waits for answers of the broker, which may never come. */
const closeMs = 3000

/** An open link to the control queue: a receiver, of one session where there are sessions. */
export interface QueueLink {
  /** Names the entity, for ids. */
  readonly entity: string
  /**
   * Hands over messages, `atOnce` at a time, until `signal` aborts; then the broker is asked to stop, and this resolves when nothing more comes.
   * Rejects when the link is of no use any more. `handler` must not reject.
   */
  receive(handler: (message: ServiceBusReceivedMessage) => Promise<void>, atOnce: number, signal: AbortSignal): Promise<void>
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

/** `sessionId` null: no sessions. Rejects where the entity is not there, does not let us in, or another holds the session. */
export async function openQueueLink(
  client: ServiceBusClient,
  { queue = '', topic, subscription }: Pick<ControlConfig, 'queue' | 'topic' | 'subscription'>,
  sessionId: string | null,
  signal: AbortSignal,
): Promise<QueueLink> {
  const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(proofMs)])
  const ofTopic = topic !== undefined && subscription !== undefined
  const entity = ofTopic ? `${topic}/Subscriptions/${subscription}` : queue
  if (sessionId !== null) {
    const wanted = { ...options, abortSignal }
    return sessionLink(
      entity,
      ofTopic ? await client.acceptSession(topic, subscription, sessionId, wanted) : await client.acceptSession(queue, sessionId, wanted),
    )
  }
  const receiver = ofTopic ? client.createReceiver(topic, subscription, options) : client.createReceiver(queue, options)
  // A subscription of the SDK would try in silence.
  await receiver.peekMessages(1, { abortSignal })
  return plainLink(entity, receiver)
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
    async receive(handler, atOnce, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const stop = (): void => resolve()
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) resolve()
      const looking = setInterval(() => {
        if (receiver.isClosed) reject(new Error(`the link to ${entity} was closed by the other side`))
      }, lookMs)
      const subscription = receiver.subscribe(
        { processMessage: handler, processError: async ({ error }) => reject(error) },
        { autoCompleteMessages: false, maxConcurrentCalls: atOnce },
      )
      try {
        await promise
        // Drains: what the broker has sent already is still handed over, and can still be settled.
        await subscription.close()
      } finally {
        clearInterval(looking)
        signal.removeEventListener('abort', stop)
      }
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
