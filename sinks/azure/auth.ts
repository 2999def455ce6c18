import { z } from 'zod'
import { secretSchema } from '../secret.ts'

/** The ways to a token of Entra ID, as variants of `auth`; a sink joins them with those of its own. */
export const tokenAuthVariants = [
  z
    .strictObject({
      type: z.literal('managed-identity').describe('The identity that Azure gave to this VM.'),
      clientId: z.string().min(1).optional().describe('Client id of a user-assigned identity; the system-assigned one where missing.'),
    })
    .describe('The identity of this VM.'),
  z
    .strictObject({
      type: z
        .literal('workload-identity')
        .describe('The federated token that AKS or another issuer put into a file (AZURE_FEDERATED_TOKEN_FILE).'),
    })
    .describe('A federated token.'),
  z
    .strictObject({
      type: z.literal('client-secret').describe('An app registration with a secret.'),
      tenantId: z.string().min(1).describe('Tenant of the app registration.'),
      clientId: z.string().min(1).describe('Client id of the app registration.'),
      clientSecret: secretSchema.describe('Its secret, a text or `{ file: … }`.'),
    })
    .describe('An app registration.'),
] as const

const tokenAuthSchema = z.discriminatedUnion('type', tokenAuthVariants)
export type TokenAuth = z.output<typeof tokenAuthSchema>
