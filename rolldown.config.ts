import { defineConfig } from 'rolldown'

/** One entry; each dynamic import becomes a chunk beside it, so the SDK of a sink that is not configured is never read. */
export default defineConfig({
  input: { foreshock: 'src/cli/main.ts' },
  platform: 'node',
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    cleanDir: true,
    minify: { compress: true, mangle: false, codegen: false },
  },
})
