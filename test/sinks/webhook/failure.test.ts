import { describe, expect, it } from 'vitest'
import { ForeshockError } from '../../../sinks/error.ts'
import { classifyFailure } from '../../../sinks/webhook/failure.ts'

const target = new URL('https://ops.example:8443/hook/s3cret?code=s3cret')
const failing = (code: string): Error => Object.assign(new Error(`${code} at ${target.href}`), { code })

describe('a request without a response', () => {
  it.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETDOWN',
    'ETIMEDOUT',
    'EPIPE',
    'EMFILE',
    'UND_ERR_SOCKET',
  ])('is a matter of the network, and passes, for %s', (code) => {
    expect(classifyFailure(failing(code), target)).toMatchObject({ because: 'transient', code: 'network' })
  })

  it.each(['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID', 'EPROTO'])(
    'is a matter of trust, and stays, for %s',
    (code) => {
      expect(classifyFailure(failing(code), target)).toMatchObject({ because: 'refused', code: 'tls' })
    },
  )

  it('is refused where the options are at fault', () => {
    expect(classifyFailure(new ForeshockError('config_invalid', 'no file'), target)).toMatchObject({
      because: 'refused',
      detail: 'no file',
    })
  })

  it.each(['ECONNREFUSED', 'CERT_HAS_EXPIRED', 'HPE_INVALID_CONSTANT', 'UND_ERR_DESTROYED'])(
    'tells of %s without path and query',
    (code) => {
      const { detail, cure } = classifyFailure(failing(code), target)
      expect(detail + cure).not.toContain('s3cret')
    },
  )

  it.each([new TypeError('a fault of the program'), failing('UND_ERR_INVALID_ARG'), failing('ERR_INVALID_ARG_TYPE')])(
    'is thrown on: %s',
    (error) => {
      expect(() => classifyFailure(error, target)).toThrow(error)
    },
  )
})
