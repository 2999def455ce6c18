#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
/**
 * The entry. It says what is wrong on a Node that is too old before anything newer than that Node is parsed, which is why
 * everything else is imported dynamically.
 */
const needed = 24
const major = Number(process.versions.node.split('.')[0])
if (major < needed) {
  process.stderr.write(
    `foreshock needs Node ${needed} or newer, this is ${process.versions.node}: install it, or run npm ci and npm run -s foreshock -- … in a checkout\n`,
  )
  process.exitCode = 2
} else {
  // A resident process next to somebody's workload keeps small. undici parses HTTP in WebAssembly: compiling that with the optimizing compiler
  // takes 13 MB, and the garbage of starting up lets the new space grow by 4 MB that are not needed again. See bench/README.md.
  for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering', '--semi-space-growth-factor=1']) setFlagsFromString(flag)
  const { main } = await import('./program.ts')
  process.exitCode = await main(process.argv)
  // Everything was closed. What still holds the process (a connection attempt that hangs) is given up.
  setTimeout(() => process.exit(), 2_000).unref()
}
