import type { Claims } from './claims.ts'
import { audiencePath } from './address.ts'
import type { BrokerContext } from './context.ts'
import type { Answer, Request } from './request-response.ts'
import { allRights, checkSignature, type Grant } from './token.ts'

/**
 * Claims-based security: a client puts a token for an audience before it attaches links.
 * Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
 */
export async function answerPutToken(request: Request, claims: Claims, context: BrokerContext): Promise<Answer> {
  if (request.operation !== 'put-token') {
    return { status: 400, description: `$cbs answers put-token, not "${request.operation}"`, condition: 'com.microsoft:argument-error' }
  }
  const { name: audience, type } = request.properties
  if (typeof audience !== 'string') return unauthorized('the request names no audience')
  if (context.faults.refusesToken(entityOf(audience))) return unauthorized('the token is refused on command')
  const grant = await judge(request.body, type, audience, context)
  if (!grant.ok) {
    context.log.debug({ audience, why: grant.why }, 'a token was refused')
    return unauthorized(grant.why)
  }
  claims.put(audience, grant.expiresAt, grant.rights)
  return { status: 202, description: 'Accepted' }
}

async function judge(token: unknown, type: unknown, audience: string, context: BrokerContext): Promise<Grant> {
  // Where links need no token, none is judged: a test with a clock of its own gets along with SDKs that live in the real time.
  if (!context.requireToken) return { ok: true, expiresAt: Number.MAX_SAFE_INTEGER, rights: allRights }
  if (typeof token !== 'string') return { ok: false, why: 'the token must be a string' }
  if (type === 'servicebus.windows.net:sastoken') return checkSignature(token, audience, context.keys, context.now())
  if (type !== 'jwt') return { ok: false, why: `tokens of type ${String(type)} are not taken` }
  const granted = (await context.verifyJwt?.(token, audience)) ?? null
  if (granted === null) return { ok: false, why: 'the JWT is not accepted' }
  return { ok: true, expiresAt: granted.expiresAt, rights: granted.rights ?? allRights }
}

/** The entity that an audience is about: all but what names a part of it. */
export function entityOf(audience: string): string {
  return audiencePath(audience).replace(/\/(\$management|consumergroups\/.*|partitions\/.*|subscriptions\/.*|\$deadletterqueue)$/, '')
}

function unauthorized(why: string): Answer {
  return { status: 401, description: `InvalidToken: ${why}`, condition: 'amqp:unauthorized-access' }
}
