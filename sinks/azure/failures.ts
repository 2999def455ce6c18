import type { DeliveryOutcome } from '../contract.ts'

/** What a failure means for the event, and what a person can do about it. */
export interface Meaning {
  readonly means: Exclude<Extract<DeliveryOutcome, { status: 'retry' }>['because'], 'stopped'> | 'rejected'
  /** Short, for metrics and the outbox. */
  readonly code: string
  readonly cure: string
}

interface Row extends Meaning {
  /** `code` or `name` of an error of an SDK, of Node, or of ours. */
  readonly when: readonly string[]
}

const retryLater = 'nothing to do: it is tried again'
const reach = 'check the name of the namespace, DNS, and that port 5671 is open; transport: websockets needs only 443'
const credentials = 'check `auth`, and that the identity has the sender role (see docs/azure-setup.md)'

/**
 * Every failure that is known, by the names that the SDKs give it: @azure/event-hubs and core-amqp first, @azure/service-bus second.
 * Sources: ConditionErrorNameMapper in @azure/core-amqp, ServiceBusErrorCode in @azure/service-bus, and
 * https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
 */
const failures: readonly Row[] = [
  {
    when: ['ServerBusyError', 'ServiceBusy'],
    means: 'throttled',
    code: 'server_busy',
    cure: 'raise the throughput or messaging units of the namespace if it lasts',
  },
  {
    // The broker gave no link credit: its way to say the same without a word.
    when: ['SenderBusyError', 'InsufficientCreditError', 'TransferLimitExceededError'],
    means: 'throttled',
    code: 'no_credit',
    cure: 'raise the throughput or messaging units of the namespace if it lasts',
  },
  {
    when: ['UnauthorizedError', 'UnauthorizedAccess'],
    means: 'refused',
    code: 'unauthorized',
    cure: credentials,
  },
  {
    // core-amqp's name for a plain amqp:not-found is ServiceCommunicationError.
    when: [
      'MessagingEntityNotFoundError',
      'MessagingEntityNotFound',
      'ServiceCommunicationError',
      'ServiceCommunicationProblem',
      'ResourceDeletedError',
    ],
    means: 'refused',
    code: 'entity_not_found',
    cure: 'create the event hub, queue or topic, or mend its name',
  },
  {
    when: ['MessagingEntityDisabledError', 'MessagingEntityDisabled'],
    means: 'refused',
    code: 'entity_disabled',
    cure: 'enable the event hub, queue or topic for sending',
  },
  {
    when: ['QuotaExceededError', 'QuotaExceeded'],
    means: 'refused',
    code: 'quota_exceeded',
    cure: 'drain the entity, or raise its maximum size',
  },
  {
    // Sent without a session to an entity that requires them, above all.
    when: ['InvalidOperationError', 'NotImplementedError'],
    means: 'refused',
    code: 'not_allowed',
    cure: 'where the queue, or a subscription of the topic, requires sessions, set session: event',
  },
  {
    when: ['MessageTooLargeError', 'MessageSizeExceeded'],
    means: 'rejected',
    code: 'too_large',
    cure: 'raise the maximum message size of the entity',
  },
  {
    when: ['ArgumentError', 'ArgumentOutOfRangeError', 'DecodeError', 'InvalidFieldError', 'PreconditionFailedError'],
    means: 'rejected',
    code: 'invalid_message',
    cure: 'look at the dead letter: the broker does not take it as it is',
  },
  {
    when: ['OperationTimeoutError', 'ServiceUnavailableError', 'ServiceTimeout', 'TimeoutError'],
    means: 'transient',
    code: 'timeout',
    cure: reach,
  },
  {
    when: ['InternalServerError', 'OperationCancelledError', 'SendOperationFailedError', 'SenderNotReadyError', 'ResourceLockedError'],
    means: 'transient',
    code: 'broker_failed',
    cure: retryLater,
  },
  {
    when: ['unreachable', 'DetachForcedError', 'ConnectionForcedError', 'LinkRedirectError', 'ConnectionRedirectError', 'FramingError'],
    means: 'transient',
    code: 'connection_lost',
    cure: reach,
  },
  {
    when: [
      'ECONNREFUSED',
      'ECONNRESET',
      'EPIPE',
      'ETIMEDOUT',
      'ENOTFOUND',
      'EAI_AGAIN',
      'EHOSTUNREACH',
      'EHOSTDOWN',
      'ENETUNREACH',
      'ENETDOWN',
      'ENETRESET',
      'EADDRNOTAVAIL',
      'ECONNABORTED',
      'ConnectionLostError',
    ],
    means: 'transient',
    code: 'network',
    cure: reach,
  },
  {
    when: [
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'ERR_SSL_PACKET_LENGTH_TOO_LONG',
    ],
    means: 'refused',
    code: 'tls',
    cure: 'name the authority that signed the certificate in NODE_EXTRA_CA_CERTS, or mend the endpoint',
  },
  {
    when: ['CredentialUnavailableError', 'AuthenticationError', 'AggregateAuthenticationError', 'AuthenticationRequiredError'],
    means: 'refused',
    code: 'no_token',
    cure: 'give this VM an identity (az vm identity assign) or name the right one in auth.clientId; else check tenant, client and secret',
  },
  {
    when: ['config_invalid', 'sink_unusable'],
    means: 'refused',
    code: 'sink_unusable',
    cure: 'mend what the message names',
  },
]

const byName = new Map(failures.flatMap((row) => row.when.map((name) => [name, row] as const)))

/** What nobody has seen yet is tried again: an event is not given up for a word that is new. */
const unknown: Meaning = { means: 'transient', code: 'unexpected', cure: retryLater }

/** What went wrong while sending or connecting, whatever it is wrapped in. */
export function meaningOf(error: unknown): Meaning {
  return known(error) ?? unknown
}

/** Several attempts, or several addresses, end as an AggregateError whose own message is empty: the first part that is known counts. */
function known(error: unknown): Meaning | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof AggregateError) return error.errors.map(known).find((meaning) => meaning !== undefined)
  if (Reflect.get(error, 'code') === 'sink_unusable') {
    const beneath = known(error.cause)
    if (beneath !== undefined) return beneath
  }
  for (const name of namesOf(error)) {
    const meaning = byName.get(name)
    if (meaning !== undefined) return meaning
  }
  return known(error.cause)
}

/** @azure/service-bus calls what it does not know a GeneralError, and leaves the name beneath at the head of the message. */
function namesOf(error: Error): string[] {
  const code: unknown = Reflect.get(error, 'code')
  const prefix = /^([A-Za-z_]+): /.exec(error.message)?.[1]
  return [...(typeof code === 'string' ? [code] : []), ...(prefix === undefined ? [] : [prefix]), error.name]
}

/** What the error says, as one line without secrets. */
export function lineOf(error: unknown): string {
  if (!(error instanceof Error)) return oneLine(String(error))
  if (error instanceof AggregateError && error.message === '') return [...new Set(error.errors.map(lineOf))].join('; ')
  return oneLine(error.message === '' ? error.name : error.message)
}

const maxLine = 400

function oneLine(text: string): string {
  const line = text
    .replace(/\s+/g, ' ')
    .trim()
    // What a connection string, a shared access signature or a JWT would show.
    .replace(/\b(SharedAccessKey|SharedAccessSignature|sig|client_secret)=[^;&\s]*( sr=\S*)?/gi, '$1=…')
    .replace(/\beyJ[\w-]+(\.[\w-]*){1,2}/g, '…')
  return line.length <= maxLine ? line : `${line.slice(0, maxLine)}…`
}

/** Azure says in the text of a refusal how long to wait: "Please wait 4 seconds and try again." */
export function waitOf(error: unknown): number | undefined {
  const seconds = /\bwait (\d{1,4}) seconds?\b/i.exec(lineOf(error))?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
