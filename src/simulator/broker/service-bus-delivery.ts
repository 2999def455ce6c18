import rhea from 'rhea'
import { encodeDelivery, type AcceptedMessage } from './message.ts'
import type { Held } from './queue.ts'

const states = { active: 0, deferred: 1, scheduled: 2 } as const

/**
 * The bytes of a queued message as a receiver gets them: broker properties as annotations, what abandon or defer changed and why it died as
 * application properties.
 */
export function encodeHeld(
  held: Held<AcceptedMessage>,
  options: { readonly source: string; readonly omitBody?: boolean; readonly showLock?: boolean },
): Buffer {
  const { types } = rhea
  const annotations: Record<string, unknown> = {
    'x-opt-sequence-number': types.wrap_long(held.sequenceNumber),
    'x-opt-enqueue-sequence-number': types.wrap_long(held.enqueuedSequenceNumber),
    'x-opt-enqueued-time': types.wrap_timestamp(held.enqueuedAt),
    'x-opt-message-state': types.wrap_int(states[held.state]),
  }
  if (held.lock !== null && options.showLock !== false) annotations['x-opt-locked-until'] = types.wrap_timestamp(held.lock.until)
  const changed: Record<string, unknown> = { ...held.modified }
  if (held.deadLetter !== null) {
    annotations['x-opt-deadletter-source'] = options.source.replace(/\/\$DeadLetterQueue$/, '')
    Object.assign(changed, held.deadLetter.properties, {
      DeadLetterReason: held.deadLetter.reason,
      DeadLetterErrorDescription: held.deadLetter.description,
    })
  }
  return encodeDelivery(held.payload, {
    deliveryCount: held.deliveryCount,
    annotations,
    ...(Object.keys(changed).length > 0 ? { applicationProperties: changed } : {}),
    ...(options.omitBody === true ? { omitBody: true } : {}),
  })
}
