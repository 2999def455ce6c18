import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { guardedLookup, schemeProblem, urlProblem, type ResolveAll } from '../../../sinks/webhook/target.ts'
import { startTcpServer, type TcpServer } from '../../support/tcp-server.ts'

describe('the URL of a webhook', () => {
  it.each([
    'https://ops.example/hook',
    'https://10.0.0.4:8443/',
    'https://[2001:db8::1]/',
    'https://169.253.255.255/',
    'https://[fec0::1]/',
    'http://localhost:8080/hook?code=1',
  ])('may be %s', (url) => {
    expect(urlProblem(url)).toBeUndefined()
  })

  it.each([
    'http://169.254.169.254/metadata/instance',
    'https://169.254.0.1/',
    'https://169.254.169.254./',
    'https://2852039166/',
    'https://0xa9fea9fe/',
    'https://0251.0376.0251.0376/',
    'https://[::ffff:169.254.169.254]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://[::a9fe:a9fe]/',
    'https://[64:ff9b::169.254.169.254]/',
    'https://[fe80::1]/',
    'https://[febf::1]/',
    'https://168.63.129.16/',
  ])('is never %s, which leads to the platform', (url) => {
    expect(urlProblem(url)).toContain('never a target')
  })

  it.each([
    ['ops.example/hook', 'expected an absolute URL'],
    ['ftp://ops.example/', 'expected an https URL, got ftp://'],
    ['https://user:hunter2@ops.example/', 'without user name and password'],
    ['https://user@ops.example/', 'without user name and password'],
  ])('is refused as %s, without being repeated in the message', (url, message) => {
    expect(urlProblem(url)).toContain(message)
    expect(urlProblem(url)).not.toContain('hunter2')
  })

  it.each(['http://localhost/', 'http://127.0.0.1:9/', 'http://127.9.9.9/', 'http://[::1]/', 'https://ops.example/'])(
    'may be %s without allowHttp',
    (url) => {
      expect(schemeProblem(url, false)).toBeUndefined()
    },
  )

  it.each(['http://ops.example/', 'http://10.0.0.4/', 'http://localhost.example/'])('is %s only with allowHttp', (url) => {
    expect(schemeProblem(url, false)).toContain('expected https')
    expect(schemeProblem(url, true)).toBeUndefined()
  })
})

const nowhere: ResolveAll = (_, __, callback) => callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])

describe('a host name that is looked up', () => {
  let server: TcpServer

  beforeEach(async () => {
    server = await startTcpServer((socket) => socket.end())
  })
  afterEach(() => server.stop())

  /** Connects for real, through a name server that gives these addresses. Resolves with the address that was reached. */
  const reach = async (addresses: string[], { loopbackOnly = false, autoSelectFamily = true } = {}): Promise<string | undefined> => {
    const resolve: ResolveAll = (_, __, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    const socket = connect({ host: 'ops.example', port: server.port, autoSelectFamily, lookup: guardedLookup(loopbackOnly, resolve) })
    try {
      await once(socket, 'connect')
      return socket.remoteAddress
    } finally {
      socket.destroy()
    }
  }

  it.each([['169.254.169.254'], ['fe80::1'], ['fe80::1%eth0'], ['::ffff:169.254.169.254'], ['168.63.129.16']])(
    'is not connected to where it resolves to %s',
    async (address) => {
      await expect(reach([address])).rejects.toMatchObject({ code: 'sink_unusable', message: expect.stringContaining('ops.example') })
    },
  )

  it.each([true, false])('is connected to by its other addresses (happy eyeballs: %s)', async (autoSelectFamily) => {
    expect(await reach(['169.254.169.254', '127.0.0.1'], { autoSelectFamily })).toBe('127.0.0.1')
  })

  it('is no loopback because it is called localhost: http stays on this machine', async () => {
    await expect(reach(['10.0.0.4'], { loopbackOnly: true })).rejects.toMatchObject({ message: expect.stringContaining('loopback') })
    expect(await reach(['10.0.0.4', '127.0.0.1'], { loopbackOnly: true })).toBe('127.0.0.1')
  })

  it('fails as the name server says', async () => {
    const socket = connect({ host: 'ops.example', port: server.port, lookup: guardedLookup(false, nowhere) })
    await expect(once(socket, 'connect')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })
})
