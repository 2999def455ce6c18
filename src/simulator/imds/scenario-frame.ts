import { z } from 'zod'

const answers = ['document', 'body', 'bodyBase64', 'noAnswer'] as const

/** One verbatim answer, which holds until the next one. */
export const frameSchema = z
  .strictObject({
    atSeconds: z.number().nonnegative().describe('From when on; it holds until the next frame.'),
    status: z.int().min(200).max(599).default(200),
    headers: z.record(z.string(), z.string()).default({}).describe('Beside the usual ones, or instead of them.'),
    document: z.unknown().optional().describe('The body as structure; answered as compact JSON, keys in this order.'),
    body: z.string().optional().describe('The body as text, byte for byte as UTF-8.'),
    bodyBase64: z.base64().optional().describe('The body where it is not UTF-8.'),
    noAnswer: z.enum(['reset', 'hang']).optional().describe('The connection broke, or nothing came in time.'),
  })
  .superRefine(
    (frame, context) => {
      const given = answers.filter((key) => frame[key] !== undefined)
      if (given.length === 1) return
      const message = `expected one of ${answers.join(', ')}, got ${given.length === 0 ? 'none' : given.join(' and ')}`
      context.addIssue({ code: 'custom', path: [], message })
    },
    { when: ({ value }) => typeof value === 'object' && value !== null },
  )
export type Frame = z.output<typeof frameSchema>

/** The frame that holds: before the first one, the first. */
export function frameAt(frames: readonly Frame[], elapsedSeconds: number): Frame | undefined {
  return frames.findLast((frame) => frame.atSeconds <= elapsedSeconds) ?? frames[0]
}

/** The bytes of a frame's body. */
export function frameBody(frame: Frame): Buffer {
  if (frame.bodyBase64 !== undefined) return Buffer.from(frame.bodyBase64, 'base64')
  return Buffer.from(frame.body ?? (frame.document === undefined ? '' : JSON.stringify(frame.document)))
}
