import rhea, { type Message, type Sender } from 'rhea'
import { z } from 'zod'
import { decodeMessage, recordOf } from './message.ts'

/** A request to `$cbs` or a `$management` node. */
export interface Request {
  readonly operation: string
  /** Application properties. */
  readonly properties: Readonly<Record<string, unknown>>
  readonly body: unknown
}

/** Statuses are those of HTTP. `condition` is what the SDKs decide by, where it differs from the one of the status. */
export interface Answer {
  readonly status: number
  readonly description: string
  readonly condition?: string
  readonly body?: unknown
}

export type RequestHandler = (request: Request) => Answer | Promise<Answer>

/** A request whose body is not as it must be: thrown by handlers, answered with 400. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest'
}

/** Parses the body, or refuses the request. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  throw new BadRequest(z.prettifyError(parsed.error))
}

/**
 * Answers the requests that arrive on `link`. `replyLink` finds the link that a reply-to names.
 * Event Hubs reads `status-code`, Service Bus `statusCode`: every answer has both.
 */
export async function answerRequest(
  raw: Buffer,
  handler: RequestHandler,
  replyLink: (replyTo: string) => Sender | undefined,
): Promise<void> {
  const message = decodeMessage(raw)
  const properties = recordOf(message['application_properties'])
  const operation = properties['operation']
  const replyTo: unknown = message['reply_to']
  const reply = typeof replyTo === 'string' ? replyLink(replyTo) : undefined
  if (reply === undefined) return
  let answer: Answer
  try {
    answer = await handler({ operation: typeof operation === 'string' ? operation : '', properties, body: bodyOf(message) })
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error
    answer = { status: 400, description: error.message, condition: 'com.microsoft:argument-error' }
  }
  if (!reply.is_open()) return
  const status = rhea.types.wrap_int(answer.status)
  const outcome: Record<string, unknown> = {
    'status-code': status,
    statusCode: status,
    'status-description': answer.description,
    statusDescription: answer.description,
  }
  if (answer.condition !== undefined) {
    outcome['error-condition'] = rhea.types.wrap_symbol(answer.condition)
    outcome['errorCondition'] = rhea.types.wrap_symbol(answer.condition)
  }
  const id: unknown = message['message_id']
  const response = { correlation_id: idOf(id), application_properties: outcome, body: answer.body ?? null }
  reply.send(rhea.message.encode(response), undefined, 0)
}

function idOf(id: unknown): string | number | Buffer | undefined {
  return typeof id === 'string' || typeof id === 'number' || Buffer.isBuffer(id) ? id : undefined
}

/** A body in a data section comes as a section object with `content`. */
function bodyOf(message: Message): unknown {
  const body: unknown = message.body
  return typeof body === 'object' && body !== null && 'typecode' in body && 'content' in body ? body.content : body
}
