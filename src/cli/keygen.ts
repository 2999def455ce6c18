import { writeFile } from 'node:fs/promises'
import { Option } from 'commander'
import { ForeshockError } from '../../sinks/error.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'

interface KeygenOptions {
  readonly alg: 'ES256' | 'EdDSA'
  readonly kid?: string
  readonly out?: string
}

export const add: AddCommand = (program, run) => {
  program
    .command('keygen')
    .description('a key pair that signs approvals; prints its JWKS, the public part, for control.trust.jwks')
    .addOption(new Option('--alg <alg>', 'algorithm').choices(['ES256', 'EdDSA']).default('ES256'))
    .option('--kid <id>', 'name of the key (default: from its thumbprint)')
    .option(
      '--out <file>',
      'writes the private key there, readable by its owner alone; it must not exist yet. Without it, both are printed',
    )
    .action((options: KeygenOptions) => run(() => keygen(options)))
}

async function keygen({ alg, kid: named, out }: KeygenOptions): Promise<number> {
  const { calculateJwkThumbprint, exportJWK, generateKeyPair } = await import('jose')
  const pair = await generateKeyPair(alg, { extractable: true })
  const publicJwk = await exportJWK(pair.publicKey)
  const kid = named ?? (await calculateJwkThumbprint(publicJwk)).slice(0, 16)
  const privateKey = { ...(await exportJWK(pair.privateKey)), kid, alg, use: 'sig' }
  const jwks = { keys: [{ ...publicJwk, kid, alg, use: 'sig' }] }
  if (out === undefined) {
    process.stdout.write(`${JSON.stringify({ privateKey, jwks }, null, 2)}\n`)
    return exit.done
  }
  try {
    await writeFile(out, `${JSON.stringify(privateKey, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const exists = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    const why = exists ? 'it exists already: choose another name' : cause instanceof Error ? cause.message : String(cause)
    throw new ForeshockError('usage', `the private key cannot be written to ${out}: ${why}`, { cause })
  }
  process.stdout.write(`${JSON.stringify(jwks, null, 2)}\n`)
  process.stderr.write(`the private key ${kid} is in ${out}; add the printed key to the file of control.trust.jwks on every machine\n`)
  return exit.done
}
