#!/usr/bin/env node
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
  const { main } = await import('./program.ts')
  process.exitCode = await main(process.argv)
}
