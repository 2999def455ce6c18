import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CloudEvent } from '../../../sinks/cloud-event.ts'

const execute = promisify(execFile)

export interface RemoteOperator {
  /** The public key, for `control.trust.jwks`. */
  readonly jwksFile: string
  /** Approves what the event tells by a signed message to the control queue; gives the reply in a line. */
  approve(event: CloudEvent, configFile: string): Promise<string>
}

/** Somebody far away with a key of her own, who knows of an event only what a sink told her, and uses this program's own commands. */
export async function hireOperator(program: string, folder: string): Promise<RemoteOperator> {
  const keyFile = join(folder, 'operator.key.json')
  const jwksFile = join(folder, 'approvers.jwks')
  const { stdout } = await execute(process.execPath, [program, 'keygen', '--out', keyFile])
  await writeFile(jwksFile, stdout)
  return {
    jwksFile,
    async approve(event, configFile) {
      const who = ['--subject', 'alice@example.com', '--issuer', 'operations', '--audience', event.source]
      const what = [event.id, '--via', 'queue', '--sign', keyFile, '--reason', 'the machine is drained', '--wait', '10']
      const answer = await execute(process.execPath, [program, 'approve', ...what, ...who, '--config', configFile]).catch(
        (error: unknown) => {
          // A refusal is an answer too: the command says it and exits with 1.
          if (error instanceof Error && 'stdout' in error && typeof error.stdout === 'string' && error.stdout !== '')
            return { stdout: error.stdout }
          throw error
        },
      )
      return answer.stdout.trim()
    },
  }
}
