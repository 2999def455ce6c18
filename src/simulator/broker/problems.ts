import type { AmqpProblem } from './rhea-internals.ts'

/**
 * Errors as Azure words them: what the SDKs decide by is the condition.
 * Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
 */
export const problems = {
  notFound: (address: string): AmqpProblem => ({
    condition: 'amqp:not-found',
    description: `The messaging entity '${address}' could not be found.`,
  }),
  unauthorized: (what: string): AmqpProblem => ({ condition: 'amqp:unauthorized-access', description: `Unauthorized access. ${what}` }),
  tooLarge: (bytes: number, limit: number): AmqpProblem => ({
    condition: 'amqp:link:message-size-exceeded',
    description: `The received message (size:${bytes} bytes) exceeds the limit (${limit} bytes) currently allowed on the link.`,
  }),
  undecodable: (why: string): AmqpProblem => ({ condition: 'amqp:decode-error', description: `The message cannot be read: ${why}` }),
  full: (name: string): AmqpProblem => ({
    condition: 'amqp:resource-limit-exceeded',
    description: `The maximum entity size has been reached or exceeded for '${name}'.`,
  }),
  sessionRequired: (name: string): AmqpProblem => ({
    condition: 'amqp:not-allowed',
    description: `The SessionId was not set on a message, and it cannot be sent to the entity '${name}', which has sessions enabled.`,
  }),
  sessionsOnly: (name: string): AmqpProblem => ({
    condition: 'amqp:not-allowed',
    description: `It is not possible for the entity '${name}', which requires sessions, to create a non-sessionful message receiver.`,
  }),
  noSessions: (name: string): AmqpProblem => ({
    condition: 'amqp:not-allowed',
    description: `A sessionful message receiver cannot be created on the entity '${name}', which does not require sessions.`,
  }),
  sessionTaken: (id: string): AmqpProblem => ({
    condition: 'com.microsoft:session-cannot-be-locked',
    description: `The requested session '${id}' cannot be accepted. It may be locked by another receiver.`,
  }),
  noSession: (): AmqpProblem => ({
    condition: 'com.microsoft:timeout',
    description: 'The operation did not complete within the allotted time: no session with messages is free.',
  }),
  messageLockLost: (): AmqpProblem => ({
    condition: 'com.microsoft:message-lock-lost',
    description: 'The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.',
  }),
  sessionLockLost: (): AmqpProblem => ({
    condition: 'com.microsoft:session-lock-lost',
    description: 'The session lock has expired on the session. Accept the session again.',
  }),
  stolen: (what: string): AmqpProblem => ({ condition: 'amqp:link:stolen', description: what }),
  badFilter: (text: string): AmqpProblem => ({
    condition: 'com.microsoft:argument-error',
    description: `The filter is none that this broker reads: ${text}`,
  }),
} as const
