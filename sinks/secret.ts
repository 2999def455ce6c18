import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ForeshockError } from './error.ts'

/** A secret in the configuration: the text itself (from `${NAME}`, as a rule) or the file that holds it. */
export const secretSchema = z.union([
  z.string().min(1),
  z.strictObject({ file: z.string().min(1).describe('File that holds the secret, read anew whenever it is needed.') }),
])
export type Secret = z.output<typeof secretSchema>

/**
 * The text of a secret. A file is read at each call, so a rotated secret is picked up without a restart; one trailing line end is dropped.
 * Throws `config_invalid` when the file cannot be read.
 */
export async function readSecret(secret: Secret): Promise<string> {
  if (typeof secret === 'string') return secret
  try {
    return (await readFile(secret.file, 'utf8')).replace(/\r?\n$/, '')
  } catch (cause) {
    throw new ForeshockError('config_invalid', `the secret file ${secret.file} cannot be read: check that it exists and is readable`, {
      cause,
    })
  }
}
