import { z } from 'zod'
import { tokenAuthVariants } from '../azure/token-auth.ts'
import { ambientCredential } from '../azure/ambient-credential.ts'
import { credentialOf } from '../azure/credential.ts'
import { tokenFor } from '../azure/token.ts'
import { ForeshockError } from '../error.ts'
import { readSecret, secretSchema } from '../secret.ts'

const bearer = z
  .strictObject({
    type: z.literal('bearer').describe('A token that somebody gave you.'),
    token: secretSchema.describe('The token, without the word Bearer; a text or `{ file: … }`, read anew at each request.'),
  })
  .describe('A fixed token.')

const basic = z
  .strictObject({
    type: z.literal('basic').describe('A user name and a password.'),
    username: z
      .string()
      .min(1)
      .regex(/^[^:]*$/, 'expected a user name without a colon')
      .describe('The user name.'),
    password: secretSchema.describe('The password, a text or `{ file: … }`, read anew at each request.'),
  })
  .describe('User name and password.')

const entraId = z
  .strictObject({
    type: z.literal('entra-id').describe('A token of Entra ID.'),
    scope: z.string().min(1).describe('What the token is for, such as api://ops/.default or https://eventgrid.azure.net/.default.'),
    credential: z
      .discriminatedUnion('type', tokenAuthVariants)
      .optional()
      .describe('Who asks for it. By default what the environment has (AZURE_CLIENT_ID …), else the identity of this VM.'),
  })
  .describe('A token of Entra ID.')

export const webhookAuthSchema = z.discriminatedUnion('type', [bearer, basic, entraId])
type WebhookAuth = z.output<typeof webhookAuthSchema>

/** Gives the value of the Authorization header for a request made now. Throws `config_invalid`, `sink_unusable` or `unreachable`. */
export type Authorize = (signal: AbortSignal) => Promise<string>

/** Loads @azure/identity where it is needed, and asks nobody yet. */
export async function authorizer(auth: WebhookAuth): Promise<Authorize> {
  if (auth.type === 'bearer') return async () => `Bearer ${printable(await readSecret(auth.token), 'token')}`
  if (auth.type === 'basic') {
    return async () => `Basic ${Buffer.from(`${auth.username}:${await readSecret(auth.password)}`, 'utf8').toString('base64')}`
  }
  const credential = auth.credential === undefined ? await ambientCredential(process.env) : await credentialOf(auth.credential)
  return async (signal) => {
    const token = await tokenFor(credential, auth.scope, signal)
    return `Bearer ${printable(token, 'token')}`
  }
}

function printable(value: string, what: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value
  throw new ForeshockError('config_invalid', `auth.${what}: expected printable ASCII on one line: look for a blank or a line end inside it`)
}
