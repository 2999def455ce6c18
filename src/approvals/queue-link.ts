import type { ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSessionReceiver } from '@azure/service-bus'
import { ForeshockError } from '../../sinks/error.ts'
import { within, type ServiceBus } from './service-bus.ts'

/** Proof that the entity is there and lets us listen. */
const proofMs = 10_000
/** A session receiver that lost its link says so to nobody. */
const lookMs = 1000
const closeMs = 2000

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
  { client, entity: name, broken }: ServiceBus,
  subscription: string | undefined,
  sessionId: string | null,
  signal: AbortSignal,
): Promise<QueueLink> {
  const abortSignal = AbortSignal.any([signal, broken, AbortSignal.timeout(proofMs)])
  const entity = subscription === undefined ? name : `${name}/Subscriptions/${subscription}`
  if (sessionId !== null) {
    const wanted = { ...options, abortSignal }
    const receiver =
      subscription === undefined
        ? await client.acceptSession(name, sessionId, wanted)
        : await client.acceptSession(name, subscription, sessionId, wanted)
    return sessionLink(entity, receiver, broken)
  }
  const receiver = subscription === undefined ? client.createReceiver(name, options) : client.createReceiver(name, subscription, options)
  // A subscription of the SDK would try in silence.
  await receiver.peekMessages(1, { abortSignal })
  return plainLink(entity, receiver, broken)
}

function plainLink(entity: string, receiver: ServiceBusReceiver, broken: AbortSignal): QueueLink {
  return {
    ...linkOf(entity, receiver, broken),
    lockedUntil: ({ lockedUntilUtc }) => lockedUntilUtc?.getTime() ?? null,
    renew: async (message) => void (await receiver.renewMessageLock(message)),
    session: null,
  }
}

function sessionLink(entity: string, receiver: ServiceBusSessionReceiver, broken: AbortSignal): QueueLink {
  return {
    ...linkOf(entity, receiver, broken),
    lockedUntil: () => null,
    renew: async () => {},
    session: {
      lockedUntil: () => receiver.sessionLockedUntilUtc.getTime(),
      renew: async () => void (await receiver.renewSessionLock()),
    },
  }
}

function linkOf(entity: string, receiver: ServiceBusReceiver, broken: AbortSignal): Omit<QueueLink, 'lockedUntil' | 'renew' | 'session'> {
  return {
    entity,
    async receive(handler, atOnce, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const stop = (): void => resolve()
      const lose = (): void => reject(broken.reason)
      signal.addEventListener('abort', stop, { once: true })
      broken.addEventListener('abort', lose, { once: true })
      if (signal.aborted) resolve()
      if (broken.aborted) lose()
      const looking = setInterval(() => {
        if (receiver.isClosed) reject(new ForeshockError('unreachable', `the link to ${entity} was closed by the broker`))
      }, lookMs)
      try {
        const subscription = receiver.subscribe(
          { processMessage: handler, processError: async ({ error }) => reject(error) },
          { autoCompleteMessages: false, maxConcurrentCalls: atOnce },
        )
        await promise
        // Drains: what the broker has sent already is still handed over, and can still be settled.
        await within(closeMs, () => subscription.close())
      } finally {
        clearInterval(looking)
        signal.removeEventListener('abort', stop)
        broken.removeEventListener('abort', lose)
      }
    },
    complete: (message) => receiver.completeMessage(message),
    abandon: (message) => receiver.abandonMessage(message),
    deadLetter: (message, deadLetterReason, deadLetterErrorDescription) =>
      receiver.deadLetterMessage(message, { deadLetterReason, deadLetterErrorDescription }),
    close: () => within(closeMs, () => receiver.close()),
  }
}
