import { z } from 'zod'
import { secretSchema } from '../secret.ts'

/** Client ids and tenant ids are GUIDs; a tenant may also be named by its domain. */
const guid = z.guid('expected a GUID such as 11111111-2222-3333-4444-555555555555')

/** The ways to a token of Entra ID, as variants of `auth`. */
export const tokenAuthVariants = [
  z.strictObject({
    type: z.literal('managed-identity').describe('The identity of this VM.'),
    clientId: guid.optional().describe('Client id of a user-assigned identity; the system-assigned one by default.'),
  }),
  z.strictObject({
    type: z
      .literal('workload-identity')
      .describe('A federated token, as Kubernetes projects it: AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE.'),
  }),
  z.strictObject({
    type: z.literal('client-secret').describe('An application of Entra ID and its secret.'),
    tenantId: z
      .string()
      .regex(/^[A-Za-z0-9.-]+$/, 'expected the id or the domain of a tenant')
      .describe('Tenant of the application.'),
    clientId: guid.describe('Client id of the application.'),
    clientSecret: secretSchema.describe('Its secret: a text or `{ file: … }`.'),
  }),
] as const
