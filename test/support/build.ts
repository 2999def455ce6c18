import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Tests that start the real program run the real build: made afresh once per run, so it never lags behind the sources. */
export async function setup(): Promise<void> {
  await promisify(execFile)('npm', ['run', '-s', 'build'])
}
