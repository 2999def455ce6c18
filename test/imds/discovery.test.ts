import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { discoverEndpoint } from '../../src/imds/discovery.ts'
import { answersAsImds } from '../../src/imds/probe.ts'
import { httpEndpoint } from './http-endpoint.ts'

const wellKnown = 'http://169.254.169.254'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'foreshock-leases-'))
})
afterEach(() => rm(root, { recursive: true }))

const dhclient = (...options: string[]): string =>
  options
    .map(
      (option) => `lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  server-name "RD281878F4B5C9";
  option subnet-mask 255.255.255.0;
  option dhcp-lease-time 4294967295;
  option dhcp-server-identifier 168.63.129.16;
${option}  option domain-name "internal.cloudapp.net";
  renew 6 2158/01/28 12:00:00;
}
`,
    )
    .join('')

const networkd = `# This is private data. Do not parse.
ADDRESS=10.0.0.4
NETMASK=255.255.255.0
SERVER_ADDRESS=168.63.129.16
MTU=1500
CLIENTID=ffed10bdb800020000ab11f0ac2ea0d1a9c5a1
OPTION_245=a83f8110
`
const networkManager = networkd.replace('a83f8110', 'A83F8111')

let minute = 0
/** Each file is written a minute after the one before. */
async function lease(path: string, content: string): Promise<void> {
  const full = join(root, path)
  await mkdir(dirname(full), { recursive: true })
  await writeFile(full, content)
  minute += 1
  await utimes(full, minute * 60, minute * 60)
}

const discover = (env: Record<string, string> = {}): ReturnType<typeof discoverEndpoint> =>
  discoverEndpoint({ env, answers: () => Promise.resolve(false), root })

test('SCHEDULEDEVENTSIP goes before everything, without a look at anything else', async () => {
  await lease('run/systemd/netif/leases/2', networkd)
  const asked: string[] = []
  const answers = (origin: string): Promise<boolean> => Promise.resolve(asked.push(origin) > 0)
  expect(await discoverEndpoint({ env: { SCHEDULEDEVENTSIP: '100.64.0.7' }, answers, root })).toEqual({
    ok: true,
    endpoint: 'http://100.64.0.7',
    from: 'SCHEDULEDEVENTSIP',
  })
  expect(asked).toEqual([])
})

test.each(['imds.example', '169.254.169', '169.254.169.254:80', 'http://169.254.169.254', '::1'])(
  'SCHEDULEDEVENTSIP that is no IPv4 address is an error: %s',
  async (value) => {
    await lease('run/systemd/netif/leases/2', networkd)
    expect(await discover({ SCHEDULEDEVENTSIP: value })).toEqual({
      ok: false,
      looked: ['SCHEDULEDEVENTSIP'],
      detail: expect.stringContaining(`expected an IPv4 address, got "${value}"`),
    })
  },
)

test('The well-known address goes before the leases where it answers: DHCP names the platform address inside virtual networks too', async () => {
  await lease('run/systemd/netif/leases/2', networkd)
  expect(
    await discoverEndpoint({ env: { SCHEDULEDEVENTSIP: '' }, answers: (origin) => Promise.resolve(origin === wellKnown), root }),
  ).toMatchObject({
    ok: true,
    endpoint: wellKnown,
  })
})

test.each([
  ['run/systemd/netif/leases/2', networkd, 'http://168.63.129.16', 'systemd-networkd'],
  ['var/lib/NetworkManager/internal-2c0dd1ba-eth0.lease', networkManager, 'http://168.63.129.17', 'network-manager'],
  [
    'var/lib/NetworkManager/dhclient-2c0dd1ba-eth0.lease',
    dhclient('  option unknown-245 a8:3f:81:10;\n'),
    'http://168.63.129.16',
    'dhclient',
  ],
  ['var/lib/dhcp/dhclient.eth0.leases', dhclient('  option unknown-245 a8:3f:81:10;\n'), 'http://168.63.129.16', 'dhclient'],
  ['var/lib/dhclient/dhclient--eth0.lease', dhclient('  option unknown-245 a8:3f:81:10;\r\n'), 'http://168.63.129.16', 'dhclient'],
])('Option 245 is found in %s', async (path, content, endpoint, format) => {
  await lease(path, content)
  expect(await discover()).toEqual({ ok: true, endpoint, from: `DHCP option 245 in ${join(root, path)} (${format})` })
})

test.each([
  ['the last lease', ['  option unknown-245 a8:3f:81:10;\n', '  option unknown-245 64:40:0:7;\n'], '100.64.0.7'],
  ['the last lease that has the option', ['  option unknown-245 a8:3f:81:10;\n', ''], '168.63.129.16'],
  ['a quoted address of printable bytes', ['  option unknown-245 "d@AB";\n'], '100.64.65.66'],
  ['a quoted address with escapes', [String.raw`  option unknown-245 "d@\"\\";` + '\n'], '100.64.34.92'],
  ['a quoted address with an octal escape', [String.raw`  option unknown-245 "\250?A\020";` + '\n'], '168.63.65.16'],
])('dhclient: %s counts', async (_, options, address) => {
  await lease('var/lib/dhcp/dhclient.leases', dhclient(...options))
  expect(await discover()).toMatchObject({ ok: true, endpoint: `http://${address}` })
})

test.each([
  ['too few bytes', '  option unknown-245 a8:3f:81;\n'],
  ['too many bytes', '  option unknown-245 a8:3f:81:10:1;\n'],
  ['another option', '  option unknown-24 a8:3f:81:10;\n'],
  ['a comment', '# option unknown-245 a8:3f:81:10;\n'],
  ['no address of a host', '  option unknown-245 0:0:0:0;\n  option unknown-245 7f:0:0:1;\n  option unknown-245 ff:ff:ff:ff;\n'],
])('dhclient: %s names nothing', async (_, option) => {
  await lease('var/lib/dhcp/dhclient.leases', dhclient(option))
  expect(await discover()).toMatchObject({ ok: false })
})

test('Of several lease files with the option the one that was written last counts', async () => {
  await lease('var/lib/dhcp/dhclient.leases', dhclient('  option unknown-245 64:40:0:1;\n'))
  await lease('run/systemd/netif/leases/3', networkd.replace('a83f8110', '64400003'))
  await lease('run/systemd/netif/leases/2', networkd.replace('a83f8110', '64400002'))
  await lease('var/lib/NetworkManager/internal-x-eth1.lease', 'ADDRESS=10.0.0.5\n')
  await lease('var/lib/NetworkManager/timestamps', 'OPTION_245=64400009\n')
  expect(await discover()).toMatchObject({ endpoint: 'http://100.64.0.2' })
})

test('Where nothing is found, the result says what was looked at and what to do', async () => {
  expect(await discover()).toMatchObject({ ok: false, looked: ['SCHEDULEDEVENTSIP', '169.254.169.254'], detail: /no lease file/ })
  await lease('var/lib/dhcp/dhclient.leases', dhclient(''))
  expect(await discover()).toEqual({
    ok: false,
    looked: ['SCHEDULEDEVENTSIP', '169.254.169.254', join(root, 'var/lib/dhcp/dhclient.leases')],
    detail: expect.stringMatching(/does not answer, 1 lease file.*set imds\.endpoint or SCHEDULEDEVENTSIP/),
  })
})

test.runIf(process.platform === 'linux')('A lease file that cannot be read is told, and hides no other', async () => {
  const closed = join(root, 'var/lib/dhcp/closed.leases')
  await mkdir(dirname(closed), { recursive: true })
  // Nobody may read this one, root included.
  await symlink('/proc/sys/vm/compact_memory', closed)
  expect(await discover()).toMatchObject({ ok: false, detail: expect.stringContaining(`this user cannot read ${closed}`) })
  await lease('var/lib/dhcp/dhclient.leases', dhclient('  option unknown-245 64:40:0:1;\n'))
  expect(await discover()).toMatchObject({ ok: true, endpoint: 'http://100.64.0.1' })
})

test.each([
  [200, '{"apiVersions":["2025-04-07"]}', true],
  [429, '', true],
  [503, '', true],
  [404, 'Not Found', false],
  [200, '<html></html>', false],
  [302, '', false],
])('What answers %d %j is IMDS: %s', async (status, body, expected) => {
  await using endpoint = await httpEndpoint((_, response) => response.writeHead(status).end(body))
  expect(await answersAsImds(endpoint.origin, { agent: 'foreshock/test' })).toBe(expected)
  expect(endpoint.requests.map(({ url, headers }) => [url, headers['metadata']])).toEqual([['/metadata/versions', 'true']])
})
