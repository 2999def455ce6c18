import { capUtf8 } from './cap-utf8.ts'
import type { ScheduledEventData } from './schemas.ts'

type Cut = (data: ScheduledEventData) => ScheduledEventData

/**
 * What is given up, one after the other, until an event fits into the 64 KiB that CloudEvents grants: the names of a full placement group,
 * 1000 VMs, may not. `resourcesTotal` tells that there are more, and the digest in the id covers them all the same.
 */
export const scheduledEventCuts: readonly Cut[] = [
  (data) => (data.raw === undefined ? data : { ...data, raw: { truncated: capUtf8(JSON.stringify(data.raw), 1024) } }),
  ...[500, 200, 100, 20, 0].map(
    (most): Cut =>
      (data) =>
        withFewerResources(data, most),
  ),
  (data) => (data.description === null ? data : { ...data, description: capUtf8(data.description, 256) }),
  (data) => (data.vm === undefined ? data : { ...data, vm: { ...data.vm, tags: {} } }),
]

function withFewerResources(data: ScheduledEventData, most: number): ScheduledEventData {
  const first = <Value>(value: Value): Value | string[] => (isNames(value) ? value.slice(0, most) : value)
  const cut = { ...data, resources: data.resources.slice(0, most), resourcesTotal: data.resourcesTotal ?? data.resources.length }
  if (data.changes === undefined) return cut
  return { ...cut, changes: data.changes.map(({ field, from, to }) => ({ field, from: first(from), to: first(to) })) }
}

const isNames = (value: unknown): value is string[] => Array.isArray(value)
