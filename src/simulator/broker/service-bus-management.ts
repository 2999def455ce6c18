import rhea from 'rhea'
import { z } from 'zod'
import type { BrokerContext } from './context.ts'
import { lockTokenBytes, lockTokenOf } from './lock-token.ts'
import { readMessage, type AcceptedMessage } from './message.ts'
import { problems } from './problems.ts'
import type { DeadLetter, Settled } from './queue.ts'
import { enqueued, type QueueNode } from './queue-node.ts'
import { BadRequest, parseBody, type Answer, type Request } from './request-response.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import { encodeHeld } from './service-bus-delivery.ts'
import type { TopicNode } from './topic-node.ts'

/**
 * The operations of `{entity}/$management`.
 * Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response
 */
export interface ManagedEntity {
  readonly node: QueueNode | TopicNode
  readonly context: BrokerContext
  /** Who asks, as locks know it: the connection with the link that the request names. */
  readonly ownerOf: (linkName: string) => string
}

const bytes = z.instanceof(Buffer)
/** A long that fits into a number, or one of rhea's 8-byte buffers. */
const long = z.union([z.number(), bytes.transform((buffer) => Number(buffer.readBigInt64BE(0)))])
const lockTokens = z.array(bytes).min(1)
const sequenceNumbers = z.array(long)
const sessionId = z.string()

type Operation = (request: Request, entity: ManagedEntity & { readonly node: QueueNode }) => Answer

const queueOperations: Readonly<Record<string, Operation>> = {
  'com.microsoft:renew-lock': renewLocks,
  'com.microsoft:peek-message': peek,
  'com.microsoft:receive-by-sequence-number': receiveDeferred,
  'com.microsoft:update-disposition': updateDisposition,
  'com.microsoft:renew-session-lock': renewSession,
  'com.microsoft:get-session-state': getSessionState,
  'com.microsoft:set-session-state': setSessionState,
  'com.microsoft:get-message-sessions': listSessions,
}

export function answerServiceBus(request: Request, entity: ManagedEntity): Answer {
  if (request.operation === 'com.microsoft:schedule-message') return schedule(request, entity)
  if (request.operation === 'com.microsoft:cancel-scheduled-message') return cancelScheduled(request, entity)
  const operation = queueOperations[request.operation]
  const { node } = entity
  if (operation === undefined || !('queue' in node)) {
    return { status: 501, description: `${request.operation} is not supported here`, condition: 'amqp:not-implemented' }
  }
  const answer = operation(request, { ...entity, node })
  node.changed()
  return answer
}

function renewLocks(request: Request, { node }: { node: QueueNode }): Answer {
  const body = parseBody(z.object({ 'lock-tokens': lockTokens }), request.body)
  const expirations = body['lock-tokens'].map((token) => node.queue.renew(lockTokenOf(token)))
  if (expirations.includes(null)) return gone(problems.messageLockLost())
  return ok({ expirations: rhea.types.wrap_array(expirations, timestampCode, undefined) })
}

function peek(request: Request, { node }: { node: QueueNode }): Answer {
  const body = parseBody(
    z.object({
      'from-sequence-number': long,
      'message-count': z.int().positive(),
      'session-id': sessionId.nullish(),
      'omit-message-body': z.boolean().nullish(),
    }),
    request.body,
  )
  const found = node.queue.peek(body['from-sequence-number'], body['message-count'], body['session-id'] ?? null)
  if (found.length === 0) return { status: 204, description: 'No Content' }
  const omitBody = body['omit-message-body'] === true
  return ok({ messages: found.map((held) => ({ message: encodeHeld(held, { source: node.entity, omitBody, showLock: false }) })) })
}

function receiveDeferred(request: Request, entity: ManagedEntity & { node: QueueNode }): Answer {
  const body = parseBody(
    z.object({ 'sequence-numbers': sequenceNumbers, 'receiver-settle-mode': z.number(), 'session-id': sessionId.nullish() }),
    request.body,
  )
  const { queue } = entity.node
  if (body['session-id'] != null && !holdsSession(request, entity, body['session-id'])) return gone(problems.sessionLockLost())
  const removes = body['receiver-settle-mode'] === 0
  const messages = []
  for (const number of body['sequence-numbers']) {
    const held = removes ? queue.removeDeferred(number) : queue.lockDeferred(number)
    if (held === null) {
      return { status: 404, description: `There is no deferred message ${number}.`, condition: 'com.microsoft:message-not-found' }
    }
    const token = held.lock === null ? Buffer.alloc(16) : lockTokenBytes(held.lock.token)
    messages.push({ message: encodeHeld(held, { source: entity.node.entity }), 'lock-token': rhea.types.wrap_uuid(token) })
  }
  return ok({ messages })
}

function updateDisposition(request: Request, entity: ManagedEntity & { node: QueueNode }): Answer {
  const body = parseBody(
    z.object({
      'lock-tokens': lockTokens,
      'disposition-status': z.enum(['completed', 'abandoned', 'defered', 'suspended']),
      'deadletter-reason': z.string().nullish(),
      'deadletter-description': z.string().nullish(),
      'properties-to-modify': z.record(z.string(), z.unknown()).nullish(),
      'session-id': sessionId.nullish(),
    }),
    request.body,
  )
  const { queue } = entity.node
  const changes = body['properties-to-modify'] ?? {}
  const deadLetter: DeadLetter = {
    reason: body['deadletter-reason'] ?? '',
    description: body['deadletter-description'] ?? '',
    properties: changes,
  }
  const settle: Readonly<Record<(typeof body)['disposition-status'], (token: string) => Settled>> = {
    completed: (token) => queue.complete(token),
    abandoned: (token) => queue.abandon(token, changes),
    defered: (token) => queue.defer(token, changes),
    suspended: (token) => queue.deadLetter(token, deadLetter),
  }
  const results = body['lock-tokens'].map((token) => settle[body['disposition-status']](lockTokenOf(token)))
  if (results.includes('lock-lost')) return gone(body['session-id'] == null ? problems.messageLockLost() : problems.sessionLockLost())
  return ok({})
}

function renewSession(request: Request, entity: ManagedEntity & { node: QueueNode }): Answer {
  const body = parseBody(z.object({ 'session-id': sessionId }), request.body)
  const owner = ownerOf(request, entity)
  const until = owner === null ? null : entity.node.queue.renewSession(body['session-id'], owner)
  return until === null ? gone(problems.sessionLockLost()) : ok({ expiration: rhea.types.wrap_timestamp(until) })
}

function getSessionState(request: Request, entity: ManagedEntity & { node: QueueNode }): Answer {
  const body = parseBody(z.object({ 'session-id': sessionId }), request.body)
  if (!holdsSession(request, entity, body['session-id'])) return gone(problems.sessionLockLost())
  return ok({ 'session-state': entity.node.queue.sessionState(body['session-id']) })
}

function setSessionState(request: Request, entity: ManagedEntity & { node: QueueNode }): Answer {
  const body = parseBody(z.object({ 'session-id': sessionId, 'session-state': bytes.nullish() }), request.body)
  if (!holdsSession(request, entity, body['session-id'])) return gone(problems.sessionLockLost())
  entity.node.queue.setSessionState(body['session-id'], body['session-state'] ?? null)
  return ok({})
}

function listSessions(request: Request, { node }: { node: QueueNode }): Answer {
  const body = parseBody(z.object({ skip: z.int().min(0), top: z.int().min(0) }), request.body)
  const ids = node.queue.sessionIds().slice(body.skip, body.skip + body.top)
  return ids.length === 0 ? { status: 204, description: 'No Content' } : ok({ skip: rhea.types.wrap_int(body.skip), 'sessions-ids': ids })
}

function schedule(request: Request, { node, context }: ManagedEntity): Answer {
  const body = parseBody(z.object({ messages: z.array(z.object({ message: bytes })).min(1) }), request.body)
  const messages = body.messages.map(({ message }) => readScheduled(message, node.maxMessageBytes))
  const outcome = 'queue' in node ? scheduleInQueue(node, messages) : node.schedule(messages)
  if ('condition' in outcome) return { status: 403, description: outcome.description, condition: outcome.condition }
  context.journal.add(node.entity, messages, 0, context.now())
  return ok({ 'sequence-numbers': rhea.types.wrap_array([...outcome], longCode, undefined) })
}

function scheduleInQueue(node: QueueNode, messages: readonly AcceptedMessage[]): readonly number[] | AmqpProblem {
  const problem = node.refuses(messages)
  if (problem !== null) return problem
  // A duplicate is taken and dropped; 0 is the number of nothing.
  const numbers = messages.map((message) => node.queue.enqueue(enqueued(message)) ?? 0)
  node.changed()
  return numbers
}

function readScheduled(raw: Buffer, limit: number): AcceptedMessage {
  if (raw.length > limit) throw new BadRequest(problems.tooLarge(raw.length, limit).description)
  try {
    return readMessage(raw)
  } catch (cause) {
    throw new BadRequest('a message cannot be decoded', { cause })
  }
}

function cancelScheduled(request: Request, { node }: ManagedEntity): Answer {
  const body = parseBody(z.object({ 'sequence-numbers': sequenceNumbers }), request.body)
  const cancel = (number: number): boolean => ('queue' in node ? node.queue.cancelScheduled(number) : node.cancelScheduled(number))
  if (body['sequence-numbers'].map(cancel).includes(false)) {
    return { status: 404, description: 'There is no such scheduled message.', condition: 'com.microsoft:message-not-found' }
  }
  return ok({})
}

function ownerOf(request: Request, entity: ManagedEntity): string | null {
  const name = request.properties['associated-link-name']
  return typeof name === 'string' ? entity.ownerOf(name) : null
}

function holdsSession(request: Request, entity: ManagedEntity & { node: QueueNode }, id: string): boolean {
  const owner = ownerOf(request, entity)
  return owner !== null && entity.node.queue.holdsSession(id, owner)
}

/** AMQP type codes of array elements. */
const timestampCode = 0x83
const longCode = 0x81

function ok(body: Record<string, unknown>): Answer {
  return { status: 200, description: 'OK', body }
}

function gone(problem: AmqpProblem): Answer {
  return { status: 410, description: problem.description, condition: problem.condition }
}
