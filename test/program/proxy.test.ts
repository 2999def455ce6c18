import { expect, it } from 'vitest'
import { afterwards, documentOf, entryOf, eventsIn, eventually, openStage, told } from '../support/program.ts'
import { startTcpServer } from '../support/tcp-server.ts'

it('reaches IMDS directly, whatever proxies the environment names', async () => {
  let connections = 0
  const trap = await startTcpServer((socket) => {
    connections += 1
    socket.destroy()
  })
  afterwards(() => trap.stop())
  const { imds, file, forward } = await openStage()
  imds.setDocument(documentOf(2, entryOf()))
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
  const proxies = [...names, ...names.map((name) => name.toLowerCase())].map((name) => [name, `http://127.0.0.1:${trap.port}`])
  const forwarder = forward({ env: { ...Object.fromEntries(proxies), NODE_USE_ENV_PROXY: '1', NO_PROXY: undefined, no_proxy: undefined } })
  await eventually(() => expect(told(eventsIn(file))).toEqual(['scheduled']))
  forwarder.send('SIGTERM')
  expect((await forwarder.ended).status).toBe(0)
  const paths = imds.requests.map(({ path }) => path.split('?')[0])
  expect(new Set(paths)).toEqual(new Set(['/metadata/instance/compute', '/metadata/scheduledevents']))
  expect(connections).toBe(0)
})
