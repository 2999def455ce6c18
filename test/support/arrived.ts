import { CloudEvent, HTTP } from 'cloudevents'
import { z } from 'zod'

/** An event as the other side read it: attributes as their canonical strings, because the binary modes carry nothing else. */
export interface Arrived {
  readonly attributes: Readonly<Record<string, string>>
  readonly data: unknown
}

const attribute = z.union([z.string(), z.number(), z.boolean()])
const eventSchema = z.object({ data: z.record(z.string(), z.unknown()) }).catchall(attribute)

/** From the JSON format, parsed. Throws where it is no event. */
export function arrivedFromJson(json: unknown): Arrived {
  const { data, ...attributes } = eventSchema.parse(json)
  return { attributes: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)])), data }
}

/** From lines of the JSON format; blank lines are no events. */
export function arrivedFromLines(text: string): Arrived[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => arrivedFromJson(JSON.parse(line)))
}

/**
 * From an HTTP message, read by the `cloudevents` package and checked against the specification's JSON Schema that it brings.
 * The package leaves percent-encoding alone, so that is undone first.
 */
export function arrivedFromHttp(headers: Readonly<Record<string, string>>, body: string): Arrived {
  const decoded = Object.entries(headers).map(([name, value]) => [name, name.startsWith('ce-') ? decodeURIComponent(value) : value])
  const event = HTTP.toEvent<unknown>({ headers: Object.fromEntries(decoded), body })
  if (!(event instanceof CloudEvent)) throw new TypeError('expected one event, got a batch')
  event.validate()
  return arrivedFromJson(JSON.parse(JSON.stringify(event)))
}
