import { describe, expect, it } from 'vitest'
import { lineOf, meaningOf, waitOf } from '../../../sinks/azure/failures.ts'

/** An error as the SDKs make it. */
const coded = (code: string, message = 'the broker said no', name = 'MessagingError'): Error =>
  Object.assign(new Error(message), { code, name })

describe('what a failure means', () => {
  it.each([
    ['ServerBusyError', 'throttled', 'server_busy'],
    ['ServiceBusy', 'throttled', 'server_busy'],
    ['SenderBusyError', 'throttled', 'no_credit'],
    ['UnauthorizedError', 'refused', 'unauthorized'],
    ['UnauthorizedAccess', 'refused', 'unauthorized'],
    ['MessagingEntityNotFoundError', 'refused', 'entity_not_found'],
    ['ServiceCommunicationProblem', 'refused', 'entity_not_found'],
    ['MessagingEntityDisabledError', 'refused', 'entity_disabled'],
    ['MessagingEntityDisabled', 'refused', 'entity_disabled'],
    ['QuotaExceededError', 'refused', 'quota_exceeded'],
    ['InvalidOperationError', 'refused', 'not_allowed'],
    ['MessageTooLargeError', 'rejected', 'too_large'],
    ['MessageSizeExceeded', 'rejected', 'too_large'],
    ['ArgumentError', 'rejected', 'invalid_message'],
    ['OperationTimeoutError', 'transient', 'timeout'],
    ['ServiceTimeout', 'transient', 'timeout'],
    ['InternalServerError', 'transient', 'broker_failed'],
    ['SendOperationFailedError', 'transient', 'broker_failed'],
    ['DetachForcedError', 'transient', 'connection_lost'],
    ['ConnectionForcedError', 'transient', 'connection_lost'],
    ['ECONNREFUSED', 'transient', 'network'],
    ['ENOTFOUND', 'transient', 'network'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'refused', 'tls'],
    ['SomethingNew', 'transient', 'unexpected'],
  ])('%s is %s', (name, means, code) => {
    expect(meaningOf(coded(name))).toMatchObject({ means, code, cure: expect.stringMatching(/./) })
  })

  it('is found by the name of an error without a code', () => {
    expect(meaningOf(Object.assign(new Error('x'), { name: 'CredentialUnavailableError' }))).toMatchObject({
      means: 'refused',
      code: 'no_token',
    })
  })

  it('is found beneath a GeneralError of Service Bus, which has it at the head of its message', () => {
    expect(meaningOf(coded('GeneralError', 'ECONNREFUSED: connect ECONNREFUSED', 'ServiceBusError'))).toMatchObject({ code: 'network' })
  })

  it('is found inside an AggregateError, however deep, and in a cause', () => {
    const nested = new AggregateError([new Error('?'), new AggregateError([coded('UnauthorizedError')])], '')
    expect(meaningOf(nested)).toMatchObject({ means: 'refused', code: 'unauthorized' })
    expect(meaningOf(new Error('outer', { cause: coded('ENETUNREACH') }))).toMatchObject({ code: 'network' })
  })

  it('is a retry for what is no error at all', () => {
    expect(meaningOf('thrown text')).toMatchObject({ means: 'transient', code: 'unexpected' })
  })
})

describe('the line about a failure', () => {
  it('has the messages of all parts where an AggregateError has none, each once', () => {
    expect(lineOf(new AggregateError([new Error('one'), new Error('two'), new Error('one')]))).toBe('one; two')
  })

  it('is one line, not longer than a person reads', () => {
    const line = lineOf(new Error(`a\n b\t c ${'x'.repeat(1_000)}`))
    expect(line).toMatch(/^a b c x+…$/)
    expect(line.length).toBeLessThan(500)
  })

  it.each([
    'Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0PQ==;EntityPath=q',
    'SharedAccessSignature=SharedAccessSignature sr=sb%3a%2f%2fx&sig=c2VjcmV0&se=1',
    'Bearer eyJhbGciOi.c2VjcmV0.c2VjcmV0',
    'client_secret=c2VjcmV0&scope=x',
  ])('has no secret of %s', (text) => {
    expect(lineOf(new Error(`cannot use ${text}`))).not.toContain('c2VjcmV0')
  })
})

describe('the wait that Azure asks for', () => {
  it.each([
    ['The request was terminated because the entity is being throttled. Error code : 50002. Please wait 4 seconds and try again.', 4_000],
    ['please wait 1 second', 1_000],
    ['throttled', undefined],
  ])('is read from "%s"', (text, expected) => {
    expect(waitOf(coded('ServerBusyError', text))).toBe(expected)
  })
})
