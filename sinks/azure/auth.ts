import { z } from 'zod'
import { secretSchema } from '../secret.ts'
import { connectionStringProblem } from './connection-string.ts'
import { tokenAuthVariants } from './token-auth.ts'

const connectionString = secretSchema.superRefine((secret, context) => {
  const message = typeof secret === 'string' ? connectionStringProblem(secret) : undefined
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})

/** Who we are to Event Hubs and Service Bus. */
export const authSchema = z
  .discriminatedUnion('type', [
    ...tokenAuthVariants,
    z.strictObject({
      type: z.literal('connection-string').describe('A shared access key or signature.'),
      connectionString: connectionString.describe('As the portal shows it, with or without EntityPath: a text or `{ file: … }`.'),
    }),
  ])
  .describe('Who sends: a token of Entra ID, or a shared access key or signature.')

export type Auth = z.output<typeof authSchema>
export type TokenAuth = Exclude<Auth, { type: 'connection-string' }>
