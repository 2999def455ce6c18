import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { startAzureMonitor, testAuth } from '../support/azure-monitor.ts'
import { startHttpReceiver } from '../support/http-receiver.ts'
import { afterwards, documentOf, entryOf, eventually, openStage, run } from '../support/program.ts'

const tls = (name: string): string => join(import.meta.dirname, '../fixtures/tls', name)

/** Each secret is used by one sink, and would be found in whatever it got into. */
const secrets = {
  query: 'querysecret-Zk3vQ8',
  path: 'pathsecret-8sKq2L',
  header: 'headersecret-mN4xR7',
  bearer: 'bearersecret-pT9wE1',
  password: 'passwordsecret-hJ6yU3',
  routingKey: 'routingsecret-bV5cX2',
  environment: 'envsecret-gF7dS4',
  client: 'clientsecret-oI1uY8',
  sharedKey: Buffer.from('sharedkeysecret-lK2jH9').toString('base64'),
  busKey: Buffer.from('buskeysecret-aQ3wS5').toString('base64'),
  proxy: 'proxysecret-rE6tD0',
}
const hmac = `whsec_${Buffer.from('signing-secret-of-the-test-run-1').toString('base64')}`
const privateKey = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })

/** Forms in which a secret might come out. */
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
]

it('shows no secret in a run in which everything fails: logs, errors, status, metrics, dead letters, and what commands print', async () => {
  const refusing = await startHttpReceiver()
  afterwards(() => refusing.stop())
  refusing.behave({ does: 'answer', status: 400, body: Object.values(secrets).join(' '), headers: { location: `/${secrets.path}` } })
  const gone = await startHttpReceiver()
  afterwards(() => gone.stop())
  gone.behave({ does: 'answer', status: 302, headers: { location: `${gone.origin}/${secrets.path}` } })
  const azure = await startAzureMonitor()
  afterwards(() => azure.stop())
  azure.refuseTokens(401)

  const { imds, folder, configure, forward } = await openStage()
  const file = (name: string, text: string): { file: string } => {
    writeFileSync(join(folder, name), text)
    return { file: join(folder, name) }
  }
  const filter = { types: ['scheduledevent.*'] }
  const env = {
    BEARER: secrets.bearer,
    HTTPS_PROXY: `http://user:${secrets.proxy}@127.0.0.1:1`,
    AZURE_AUTHORITY_HOST: azure.origin,
    NODE_EXTRA_CA_CERTS: tls('ca.pem'),
  }
  const config = configure({
    log: { level: 'trace' },
    admin: { listen: '127.0.0.1:0' },
    sinks: [
      { name: 'query', type: 'webhook', url: `${refusing.origin}/${secrets.path}?code=${secrets.query}`, filter },
      { name: 'header', type: 'webhook', url: gone.origin, headers: { Authorization: `Splunk ${secrets.header}` }, filter },
      { name: 'bearer', type: 'webhook', url: 'http://127.0.0.1:1/', auth: { type: 'bearer', token: '${BEARER}' }, filter },
      {
        name: 'basic',
        type: 'webhook',
        url: refusing.origin,
        auth: { type: 'basic', username: 'ops', password: file('password', secrets.password) },
        filter,
      },
      { name: 'signed', type: 'webhook', url: refusing.origin, signing: { secrets: [hmac], privateKey }, filter },
      {
        name: 'paged',
        type: 'webhook',
        url: refusing.origin,
        template: { name: 'pagerduty', values: { routingKey: secrets.routingKey } },
        filter,
      },
      { name: 'proxied', type: 'webhook', url: `https://ops.example/${secrets.path}`, filter },
      {
        name: 'entra',
        type: 'webhook',
        url: refusing.origin,
        auth: { type: 'entra-id', scope: 'api://ops/.default', credential: { ...testAuth, clientSecret: secrets.client } },
        filter,
      },
      {
        name: 'drain',
        type: 'exec',
        command: ['/bin/sh', '-c', 'echo "$TOKEN"; env >&2; exit 3'],
        env: { TOKEN: secrets.environment },
        filter,
      },
      {
        name: 'sentinel',
        type: 'log-analytics',
        endpoint: azure.origin,
        ruleId: 'dcr-0',
        auth: { ...testAuth, clientSecret: secrets.client },
        filter,
      },
      {
        name: 'hub',
        type: 'event-hubs',
        eventHub: 'maintenance',
        auth: {
          type: 'connection-string',
          connectionString: `Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=send;SharedAccessKey=${secrets.sharedKey};UseDevelopmentEmulator=true`,
        },
        filter,
      },
      {
        name: 'bus',
        type: 'service-bus',
        queue: 'maintenance',
        auth: {
          type: 'connection-string',
          connectionString: file(
            'bus',
            `Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=send;SharedAccessKey=${secrets.busKey};UseDevelopmentEmulator=true`,
          ),
        },
        filter,
      },
    ],
  })
  imds.setDocument(documentOf(2, entryOf()))
  const told: Record<string, string> = {}
  const forwarder = forward({ env })
  const url = await eventually(() => z.string().parse(forwarder.log().find((line) => typeof line['url'] === 'string')?.['url']))
  const get = async (path: string): Promise<string> => {
    const { request } = await import('undici')
    return (await request(new URL(path, url))).body.text()
  }
  const status = z.looseObject({ sinks: z.array(z.looseObject({ name: z.string(), health: z.unknown(), dead: z.number() })) })
  await eventually(async () => {
    const { sinks } = status.parse(JSON.parse(await get('/status')))
    expect(sinks.filter(({ dead }) => dead > 0).map(({ name }) => name)).toEqual(['query', 'basic', 'signed', 'paged', 'drain'])
    const waiting = sinks.filter(({ dead }) => dead === 0)
    for (const { name, health } of waiting) expect({ name, health }).not.toMatchObject({ health: { state: 'ok' } })
  })
  for (const path of ['/status', '/metrics', '/readyz', '/healthz']) told[path] = await get(path)
  forwarder.send('SIGTERM')
  await forwarder.ended
  told['stdout'] = forwarder.stdout.join('\n')
  told['stderr'] = forwarder.stderr.join('\n')
  for (const command of [['check'], ['doctor'], ['outbox', 'list']]) {
    for (const json of [[], ['--json']]) {
      const { stdout, stderr } = await run([...command, '--config', config, ...json], { env })
      told[[...command, ...json].join(' ')] = stdout + stderr
    }
  }
  const id = /"id":\s*"(c7061bac[^"]*)"/.exec(told['outbox list --json'] ?? '')?.[1] ?? ''
  const shown = await run(['outbox', 'show', id, '--config', config], { env })
  told['outbox show'] = shown.stdout + shown.stderr
  told['state.db'] = readFileSync(join(folder, 'state.db'), 'latin1')

  // The places do hold what is to be searched.
  expect(told['stderr']).toContain('***')
  expect(told['/status']).toContain('http_302')
  expect(told['outbox list --json']).toContain('http_400')
  expect(told['outbox show']).toContain('Reboot')
  expect(told['doctor']).toContain('sentinel')

  const all = { ...secrets, hmac: hmac.slice(6), privateKey: privateKey.toString().split('\n')[1] ?? '' }
  const found = Object.entries(told).flatMap(([place, text]) =>
    Object.entries(all).flatMap(([name, secret]) => (formsOf(secret).some((form) => text.includes(form)) ? [`${name} in ${place}`] : [])),
  )
  expect(found).toEqual([])
})
