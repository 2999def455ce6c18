import type { CloudEvent } from '../../sinks/cloud-event.ts'

const texts = ['id', 'source', 'type', 'subject', 'time', 'partitionkey'] as const

/** The event of a row, undefined where the text is none: a fault of the disk, as only checked events are stored. */
export function parseStoredEvent(body: string): CloudEvent | undefined {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  return isCloudEvent(value) ? value : undefined
}

/** The shape alone: what the values must be was checked when the event was built. */
function isCloudEvent(value: unknown): value is CloudEvent {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const data: unknown = Reflect.get(value, 'data')
  return texts.every((name) => typeof Reflect.get(value, name) === 'string') && typeof data === 'object' && data !== null
}
