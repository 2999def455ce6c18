import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { httpEndpoint } from './http-endpoint.ts'

test('IMDS is reached directly whatever proxies the environment names', async () => {
  await using trap = await httpEndpoint((_, response) => response.writeHead(502).end())
  await using endpoint = await httpEndpoint((request, response) => {
    response.end(request.method === 'POST' ? '' : '{"DocumentIncarnation":3,"Events":[]}')
  })
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
  const program = new URL('get-events-child.ts', import.meta.url).pathname
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', program, endpoint.origin], {
    env: {
      ...process.env,
      ...Object.fromEntries(names.map((name) => [name, trap.origin])),
      NODE_USE_ENV_PROXY: '1',
      NO_PROXY: '',
      no_proxy: '',
    },
  })
  expect(JSON.parse(stdout)).toMatchObject({ viaEnvironment: 502, events: { kind: 'document' }, approval: { kind: 'accepted' } })
  expect(endpoint.requests.map(({ method }) => method)).toEqual(['GET', 'POST'])
  // The one request that the trap saw is the child's proof that the environment does lead there.
  expect(trap.requests).toHaveLength(1)
})
