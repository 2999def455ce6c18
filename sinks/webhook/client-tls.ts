import { readFile } from 'node:fs/promises'
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import { ForeshockError } from '../error.ts'
import { secretSchema, type Secret } from '../secret.ts'

const pemOrFile = 'PEM, or the path of a file with it'

export const clientTlsSchema = z
  .strictObject({
    ca: secretSchema.optional().describe(`Certificates of the authorities to trust, instead of those of this machine: ${pemOrFile}.`),
    cert: secretSchema.optional().describe(`Client certificate, with its chain: ${pemOrFile}.`),
    key: secretSchema.optional().describe(`Its private key: ${pemOrFile}.`),
  })
  .refine(({ cert, key }) => (cert === undefined) === (key === undefined), 'expected `cert` and `key` together')
type ClientTls = z.output<typeof clientTlsSchema>

/** As node:tls takes it. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/**
 * Reads certificates and key, anew for each connection, so that short-lived ones may be replaced in their files. Throws `config_invalid` where
 * a file cannot be read or holds something else; the message never repeats it.
 */
export async function readClientTls(given: ClientTls): Promise<TlsMaterial> {
  const material: { -readonly [Part in keyof TlsMaterial]: string } = {}
  for (const part of ['ca', 'cert', 'key'] as const) {
    const value = given[part]
    if (value !== undefined) material[part] = await readPem(part, value)
  }
  try {
    // OpenSSL skips authorities that it cannot read.
    if (material.ca !== undefined) new X509Certificate(material.ca)
    createSecureContext(material)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
    throw new ForeshockError(
      'config_invalid',
      `tls: OpenSSL refuses the certificates or the key (${code}): expected PEM, and a key that fits`,
      {
        cause,
      },
    )
  }
  return material
}

async function readPem(part: string, value: Secret): Promise<string> {
  const text = typeof value === 'string' && value.includes('-----BEGIN') ? value : await readPemFile(part, value)
  if (text.includes('-----BEGIN')) return text
  throw new ForeshockError('config_invalid', `tls.${part}: expected PEM, which starts with -----BEGIN, in that file`)
}

async function readPemFile(part: string, value: Secret): Promise<string> {
  const path = typeof value === 'string' ? value : value.file
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    // Not the path where it may be the key itself, pasted without its first line.
    const named = typeof value === 'string' ? 'the file' : `the file ${path}`
    throw new ForeshockError('config_invalid', `tls.${part}: ${named} cannot be read: check that it exists and is readable`, { cause })
  }
}
