import { z } from 'zod'

const seconds = z.number().nonnegative()

/** Seconds of notice by type, as documented. */
const nominalNotice = new Map([
  ['Freeze', 900],
  ['Reboot', 900],
  ['Redeploy', 600],
  ['Preempt', 30],
  ['Terminate', 300],
])

const rescheduleSchema = z.strictObject({
  afterSeconds: z.number().positive().describe('Counted from appearsAtSeconds.'),
  noticeSeconds: seconds.describe('From this change to the new NotBefore.'),
})

const shape = {
  id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe(
      'EventId. Default: a GUID made from the name of the scenario and the place in the list. Given twice, the event comes back, or stands in the document twice.',
    ),
  type: z.string().min(1).describe('EventType: Freeze, Reboot, Redeploy, Preempt, Terminate, or anything else, which passes through.'),
  source: z.string().min(1).default('Platform').describe('EventSource: Platform or User.'),
  resources: z.array(z.string()).describe('Names of the affected machines, whether or not they are among `vms`.'),
  description: z.string().default('').describe('Description: what Azure says about it, often nothing.'),
  durationSeconds: z
    .int()
    .min(-1)
    .default(-1)
    .describe('DurationInSeconds: the announced impact; -1 is unknown. It does not move the timeline.'),
  appearsAtSeconds: seconds.default(0).describe('When it enters the document.'),
  noticeSeconds: seconds
    .optional()
    .describe(
      'From its appearance to NotBefore. Default by type: Freeze and Reboot 900, Redeploy 600, Preempt 30, Terminate 300, others 900.',
    ),
  status: z
    .enum(['Scheduled', 'Started'])
    .default('Scheduled')
    .describe('The status in which it appears. Started: without any notice, as with a hardware failure.'),
  startedForSeconds: z.number().positive().default(300).describe('How long it stands as Started before it disappears.'),
  cancelAfterSeconds: z
    .number()
    .positive()
    .optional()
    .describe('Counted from appearsAtSeconds: it disappears without having started, unless an approval has started it by then.'),
  reschedule: z.array(rescheduleSchema).default([]).describe('Changes of NotBefore while it is scheduled, in order of time.'),
  approvalDelaySeconds: seconds.default(10).describe('From an approval to the start; NotBefore stays the latest moment.'),
  extra: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Further fields of its entry, verbatim, in every API version; one that the simulator writes itself is replaced.'),
}

/** What the rules between keys need, so that they are checked whatever is wrong with the other keys. */
const lifeSchema = z.object(shape).pick({ type: true, status: true, noticeSeconds: true, cancelAfterSeconds: true, reschedule: true })
type Life = z.output<typeof lifeSchema>

/** One event of a scenario and its whole life. */
export const eventSchema = z
  .strictObject(shape)
  .superRefine(
    (event, context) => {
      for (const { path, message } of mistakesOfLife(lifeSchema.parse(event))) context.addIssue({ code: 'custom', path, message })
    },
    { when: ({ value }) => lifeSchema.safeParse(value).success },
  )
  .transform((event) => ({ ...event, noticeSeconds: noticeOf(event) }))

function noticeOf(life: Pick<Life, 'type' | 'status' | 'noticeSeconds'>): number {
  return life.status === 'Started' ? 0 : (life.noticeSeconds ?? nominalNotice.get(life.type) ?? 900)
}

/** Steps that could never happen, because the event would have started by then. */
function mistakesOfLife(life: Life): { path: (string | number)[]; message: string }[] {
  if (life.status === 'Started') {
    return (['noticeSeconds', 'cancelAfterSeconds', 'reschedule'] as const)
      .filter((key) => (key === 'reschedule' ? life.reschedule.length > 0 : life[key] !== undefined))
      .map((key) => ({ path: [key], message: 'expected nothing here, since the event appears as Started: remove it, or the status' }))
  }
  const mistakes: { path: (string | number)[]; message: string }[] = []
  const cancelAfter = life.cancelAfterSeconds ?? Number.POSITIVE_INFINITY
  let startsAfter = noticeOf(life)
  let previous = 0
  for (const [index, { afterSeconds, noticeSeconds }] of life.reschedule.entries()) {
    const path = ['reschedule', index, 'afterSeconds']
    if (afterSeconds <= previous) mistakes.push({ path, message: `expected more than ${previous}, the change before` })
    if (afterSeconds >= startsAfter) mistakes.push({ path, message: `expected less than ${startsAfter}, when it starts` })
    if (afterSeconds >= cancelAfter) mistakes.push({ path, message: `expected less than cancelAfterSeconds ${cancelAfter}` })
    previous = afterSeconds
    startsAfter = afterSeconds + noticeSeconds
  }
  if (life.cancelAfterSeconds !== undefined && life.cancelAfterSeconds >= startsAfter) {
    const message = `expected less than ${startsAfter}, when it starts`
    mistakes.push({ path: ['cancelAfterSeconds'], message })
  }
  return mistakes
}
