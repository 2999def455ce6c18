import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, type LookupFunction, type Socket } from 'node:net'
import { ForeshockError } from './error.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy that the environment names for a URL: HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY, the lower-case forms first, unless NO_PROXY lists the
 * host or the host is this machine. Throws `sink_unusable` for a proxy that is no http or https URL; the message
 * does not repeat it, because it may hold a password.
 *
 * NO_PROXY is a list, by commas or spaces, of `*`, host names (which cover what is below them, with or without a leading dot or `*.`), addresses
 * and networks (`10.0.0.0/8`), each with a port or without.
 */
export function proxyFor(target: URL, env: Environment): URL | undefined {
  const secure = target.protocol === 'https:' || target.protocol === 'wss:'
  const name = [...(secure ? ['https_proxy'] : ['http_proxy']), 'all_proxy'].find((name) => read(env, name) !== undefined)
  if (name === undefined) return undefined
  const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = target.port === '' ? (secure ? '443' : '80') : target.port
  // Loopback of the proxy's machine is another one, and a receiver on this machine is reached without anybody's help.
  if (isLoopback(host) || isExcepted(read(env, 'no_proxy') ?? '', host, port)) return undefined
  const text = read(env, name) ?? ''
  const proxy = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (proxy === null || (proxy.protocol !== 'http:' && proxy.protocol !== 'https:')) {
    throw new ForeshockError(
      'sink_unusable',
      `${name.toUpperCase()}: expected the URL of an http or https proxy such as http://proxy.example:3128`,
    )
  }
  return proxy
}

/** The value of Proxy-Authorization for the user and password of the proxy's URL, where it has them. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined
  return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`, 'utf8').toString('base64')}`
}

/**
 * A connection to `authority` (`host:port`) through a proxy, by CONNECT. Throws `sink_unusable` where the proxy does not allow it, `unreachable`
 * where it cannot do it now, and what node:net throws where the proxy itself is out of reach.
 */
export function tunnelThrough(
  proxy: URL,
  authority: string,
  { lookup, signal }: { lookup: LookupFunction; signal: AbortSignal },
): Promise<Socket> {
  const credentials = proxyAuthorization(proxy)
  const request = (proxy.protocol === 'https:' ? requestHttps : requestHttp)({
    method: 'CONNECT',
    hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port === '' ? undefined : proxy.port,
    path: authority,
    headers: { host: authority, ...(credentials === undefined ? {} : { 'proxy-authorization': credentials }) },
    agent: false,
    lookup,
    signal,
  })
  return new Promise((resolve, reject) => {
    request.once('error', reject)
    request.once('connect', ({ statusCode = 0 }, socket, head) => {
      if (statusCode === 200 && head.length === 0) {
        resolve(socket)
        return
      }
      socket.destroy()
      const answered = `the proxy ${proxy.host} answered ${statusCode} when asked to connect to ${authority}`
      const cure = statusCode === 407 ? 'set user name and password in its URL' : 'allow it there, or except the host in NO_PROXY'
      reject(new ForeshockError(statusCode >= 500 ? 'unreachable' : 'sink_unusable', `${answered}: ${cure}`))
    })
    request.once('response', (response) => {
      // node:http gives a refusal of CONNECT as 'connect' too; a response here is none at all.
      response.destroy()
      reject(new ForeshockError('unreachable', `the proxy ${proxy.host} does not understand CONNECT`))
    })
    request.end()
  })
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || covers('127.0.0.0/8', host, '') || host === '::1'

/** The empty text means unset, as in every shell script. */
function read(env: Environment, name: string): string | undefined {
  return env[name] || env[name.toUpperCase()] || undefined
}

function isExcepted(list: string, host: string, port: string): boolean {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry === '*' || (entry !== '' && covers(entry, host, port)))
}

function covers(entry: string, host: string, port: string): boolean {
  const [, bracketed, plain, entryPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? []
  const pattern = bracketed ?? plain ?? entry
  if (entryPort !== undefined && entryPort !== port) return false
  const [address = '', bits] = pattern.split('/')
  const family = isIP(address)
  if (family !== 0) return isIn(networkOf(address, family, bits), host)
  const domain = pattern.replace(/^\*?\./, '')
  return host === domain || host.endsWith(`.${domain}`)
}

function networkOf(address: string, family: number, bits: string | undefined): BlockList {
  const network = new BlockList()
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const most = family === 4 ? 32 : 128
  const length = bits === undefined ? most : Number(bits)
  // What is no length of a prefix excepts nothing.
  if (Number.isInteger(length) && length >= 0 && length <= most) network.addSubnet(address, length, type)
  return network
}

function isIn(list: BlockList, host: string): boolean {
  const family = isIP(host)
  return family !== 0 && list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
