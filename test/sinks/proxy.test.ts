import { describe, expect, it } from 'vitest'
import { proxyAuthorization, proxyFor } from '../../sinks/proxy.ts'

const proxy = 'http://proxy.example:3128'
const chosen = (url: string, env: Record<string, string>): string | undefined => proxyFor(new URL(url), env)?.origin

describe('the proxy of the environment', () => {
  it.each([
    ['https://ops.example/', { HTTPS_PROXY: proxy }, proxy],
    ['https://ops.example/', { https_proxy: proxy, HTTPS_PROXY: 'http://other.example' }, proxy],
    ['https://ops.example/', { HTTP_PROXY: proxy }, undefined],
    ['https://ops.example/', { ALL_PROXY: proxy }, proxy],
    ['https://ops.example/', { HTTPS_PROXY: '', ALL_PROXY: proxy }, proxy],
    ['wss://ops.example/', { HTTPS_PROXY: proxy }, proxy],
    ['http://ops.example/', { HTTP_PROXY: proxy }, proxy],
    ['http://ops.example/', { HTTPS_PROXY: proxy }, undefined],
    ['https://ops.example/', { HTTPS_PROXY: 'proxy.example:3128' }, proxy],
    ['https://ops.example/', {}, undefined],
  ])('for %s in %j is %s', (url, env, expected) => {
    expect(chosen(url, env)).toBe(expected)
  })

  it.each([
    ['*', 'https://ops.example/'],
    ['ops.example', 'https://ops.example/'],
    ['OPS.example', 'https://ops.EXAMPLE/'],
    ['example', 'https://ops.example/'],
    ['.example', 'https://ops.example/'],
    ['*.example', 'https://ops.example/'],
    ['other.org ops.example', 'https://ops.example/'],
    ['other.org,,ops.example:8443', 'https://ops.example:8443/'],
    ['ops.example:443', 'https://ops.example/'],
    ['10.0.0.0/8', 'https://10.1.2.3/'],
    ['10.1.2.3', 'https://10.1.2.3/'],
    ['fd00::/8', 'https://[fd12::1]/'],
    ['fd12::1', 'https://[fd12::1]/'],
    ['[fd12::1]:8443', 'https://[fd12::1]:8443/'],
  ])('is none where NO_PROXY is %s for %s', (list, url) => {
    expect(chosen(url, { HTTPS_PROXY: proxy, NO_PROXY: list })).toBeUndefined()
    expect(chosen(url, { HTTPS_PROXY: proxy, no_proxy: list })).toBeUndefined()
  })

  it.each([
    ['xample', 'https://ops.example/'],
    ['ops.example:8443', 'https://ops.example/'],
    ['ops.example.org', 'https://ops.example/'],
    ['10.0.0.0/33', 'https://10.1.2.3/'],
    ['10.0.0.0/x', 'https://10.1.2.3/'],
    ['fd00::/8', 'https://10.1.2.3/'],
    ['', 'https://ops.example/'],
  ])('stays where NO_PROXY is %s for %s', (list, url) => {
    expect(chosen(url, { HTTPS_PROXY: proxy, NO_PROXY: list })).toBe(proxy)
  })

  it.each(['socks5://proxy.example', 'ftp://proxy.example', 'http://'])('is refused as %s, without repeating it', (text) => {
    expect(() => chosen('https://ops.example/', { HTTPS_PROXY: text.replace('//', '//user:hunter2@') })).toThrow(
      expect.objectContaining({ code: 'sink_unusable', message: expect.not.stringContaining('hunter2') }),
    )
  })

  it('is given the user and password of its URL', () => {
    expect(proxyAuthorization(new URL('http://user:p%40ss@proxy.example'))).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`)
    expect(proxyAuthorization(new URL('http://user@proxy.example'))).toBe(`Basic ${Buffer.from('user:').toString('base64')}`)
    expect(proxyAuthorization(new URL(proxy))).toBeUndefined()
  })
})

it.each(['http://127.0.0.1:8080/', 'http://127.9.9.9/', 'https://localhost/', 'http://[::1]:9/', 'http://hooks.localhost/'])(
  'what is on this machine is reached without the proxy of the environment: %s',
  (url) => {
    const proxies = { HTTP_PROXY: 'http://127.0.0.1:3128', HTTPS_PROXY: 'http://127.0.0.1:3128', ALL_PROXY: 'http://127.0.0.1:3128' }
    expect(proxyFor(new URL(url), proxies)).toBeUndefined()
    expect(proxyFor(new URL('http://128.0.0.1/'), proxies)?.host).toBe('127.0.0.1:3128')
  },
)
