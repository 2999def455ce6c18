import { join } from 'node:path'
import { defineConfig, type Plugin } from 'rolldown'

/**
 * Of undici only the parts that are used: its index also loads fetch, WebSocket, caches and mocks, which costs the resident process 11 MB. A part
 * that is missing here fails the build.
 */
const undiciParts: Plugin = {
  name: 'undici-parts',
  resolveId: { filter: { id: /^undici$/ }, handler: () => '\0undici' },
  load: {
    filter: { id: /^\0undici$/ },
    handler: () => `
      import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
      import api from 'undici/lib/api/index.js'
      Object.assign(Dispatcher.prototype, api)
      export { default as Agent } from 'undici/lib/dispatcher/agent.js'
      export { default as Client } from 'undici/lib/dispatcher/client.js'
      export { default as Pool } from 'undici/lib/dispatcher/pool.js'
      export { default as buildConnector } from 'undici/lib/core/connect.js'
      export { default as errors } from 'undici/lib/core/errors.js'
    `,
  },
}

/** One entry; each dynamic import becomes a chunk beside it, so the SDK of a sink that is not configured is never read. */
export default defineConfig({
  input: { foreshock: 'src/cli/main.ts' },
  platform: 'node',
  resolve: {
    // Its CommonJS build, which Node would take, brings the management client and a second copy of all that it shares with Event Hubs: 6 MB.
    alias: { '@azure/service-bus': join(import.meta.dirname, 'node_modules/@azure/service-bus/dist-esm/src/index.js') },
  },
  plugins: [undiciParts],
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    cleanDir: true,
    minify: { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
  },
})
