import type { Change, EventContent } from './model.ts'

const fields = ['eventType', 'eventStatus', 'eventSource', 'notBefore', 'resources', 'durationInSeconds'] as const

/** Each field of the content in which two sightings differ. Both have their resources sorted. */
export function changesBetween(before: EventContent, after: EventContent): Change[] {
  return fields
    .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
    .map((field) => ({ field, from: before[field], to: after[field] }))
}
