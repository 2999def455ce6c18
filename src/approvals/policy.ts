import type { LiveEvent } from '../lifecycle/model.ts'
import { namesThisVm } from '../lifecycle/names.ts'
import { statusName } from '../lifecycle/status.ts'
import { isWithin, type TimeWindow } from './time-window.ts'

/** All given parts must hold; within a list any entry is enough. Names compare without case. */
interface PolicyCondition {
  readonly eventType?: readonly string[] | undefined
  readonly eventSource?: readonly string[] | undefined
  /** An unknown duration (-1, or none) is longer than any. */
  readonly maxDurationSeconds?: number | undefined
  readonly affectsThisVm?: boolean | undefined
  readonly resourcesAtMost?: number | undefined
  /** From our first sight of the event to NotBefore. */
  readonly minNoticeSeconds?: number | undefined
  readonly timeWindows?: readonly TimeWindow[] | undefined
}

/** One entry of `approvals.auto`. */
export interface PolicyRule {
  readonly when: PolicyCondition
  /** Sinks that must have delivered the event as it stands. */
  readonly after: readonly string[]
  /** From our first sight of the event. */
  readonly delaySeconds: number
}

export interface PolicyView {
  readonly live: LiveEvent
  readonly vmName: string | null
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Whether a sink has delivered the event as it stands. */
  readonly delivered: (sink: string) => boolean
}

/**
 * What the policy says now.
 *
 * - `none`: no rule is for this event.
 * - `wait`: a rule is, and its conditions are not met yet.
 * - `late`: it can no longer be met before NotBefore, when Azure starts the event by itself.
 * - `approve`: now.
 */
export type Decision =
  | { readonly kind: 'none' }
  | { readonly kind: 'wait'; readonly rule: number; readonly for: string }
  | { readonly kind: 'late'; readonly rule: number; readonly detail: string }
  | { readonly kind: 'approve'; readonly rule: number; readonly reason: string }

/** The first rule whose conditions hold decides; time windows are something to wait for, not a reason to look at the next rule. */
export function decide(rules: readonly PolicyRule[], view: PolicyView): Decision {
  const { live, now, delivered } = view
  if (statusName(live.event.eventStatus) !== 'scheduled' || live.anomalous) return { kind: 'none' }
  const index = rules.findIndex(({ when }) => holds(when, view))
  const rule = rules[index]
  if (rule === undefined) return { kind: 'none' }
  const notBefore = live.lastNotBefore === null ? null : Date.parse(live.lastNotBefore)
  const dueAt = (live.scheduledAt ?? now) + rule.delaySeconds * 1000
  const missing = rule.after.filter((sink) => !delivered(sink))
  const windows = rule.when.timeWindows
  const obstacles = [
    ...(dueAt > now ? [`delaySeconds ends at ${new Date(dueAt).toISOString()}`] : []),
    ...(missing.length > 0 ? [`${missing.join(', ')} has not delivered the event yet`] : []),
    ...(windows === undefined || windows.some((window) => isWithin(window, now)) ? [] : ['no time window of the rule is open']),
  ]
  const wait = obstacles.join('; ')
  if (notBefore !== null && (now >= notBefore || dueAt > notBefore) && wait !== '') {
    return { kind: 'late', rule: index, detail: `not approved before NotBefore ${live.lastNotBefore}: ${wait}; Azure starts it by itself` }
  }
  if (wait !== '') return { kind: 'wait', rule: index, for: wait }
  return { kind: 'approve', rule: index, reason: reasonOf(rule, index) }
}

function holds(when: PolicyCondition, { live: { event, scheduledAt, lastNotBefore }, vmName, now }: PolicyView): boolean {
  const { eventType, eventSource, maxDurationSeconds, affectsThisVm, resourcesAtMost, minNoticeSeconds } = when
  const duration = event.durationInSeconds ?? -1
  const noticeMs = lastNotBefore === null ? Number.NEGATIVE_INFINITY : Date.parse(lastNotBefore) - (scheduledAt ?? now)
  return (
    includes(eventType, event.eventType) &&
    includes(eventSource, event.eventSource) &&
    (maxDurationSeconds === undefined || (duration >= 0 && duration <= maxDurationSeconds)) &&
    (affectsThisVm === undefined || namesThisVm(event.resources, vmName) === affectsThisVm) &&
    (resourcesAtMost === undefined || event.resources.length <= resourcesAtMost) &&
    (minNoticeSeconds === undefined || noticeMs >= minNoticeSeconds * 1000)
  )
}

function includes(wanted: readonly string[] | undefined, value: string | null): boolean {
  return wanted === undefined || (value !== null && wanted.some((one) => one.toLowerCase() === value.toLowerCase()))
}

function reasonOf({ when, after }: PolicyRule, index: number): string {
  const parts = Object.entries(when).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${JSON.stringify(value)}`]))
  return `approvals.auto[${index}]: ${parts.join(', ')}${after.length === 0 ? '' : `, after ${after.join(', ')}`}`
}
