/** A JSON value, as it stands in the `data` of an event. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined }
export type JsonObject = { readonly [key: string]: Json | undefined }

/** CloudEvents types that we publish: String, Boolean and Integer (signed, 32 bits). */
export type AttributeValue = string | number | boolean

/**
 * One CloudEvent 1.0, in the shape of the JSON format: attributes beside `data`.
 * Every event that reaches a sink has passed the checks of `src/events/build.ts`: names `[a-z0-9]{1,20}`, at most 64 KiB in all.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
 */
export interface CloudEvent {
  readonly specversion: '1.0'
  /** With `source` the identity of the event: every copy, from whatever VM or retry, carries the same two. */
  readonly id: string
  /** Lower-cased ARM id of the group (scale set) or VM that the event is about. */
  readonly source: string
  /** `{prefix}.scheduledevent.…`, `{prefix}.approval.…` or `{prefix}.forwarder.…`, ending in `.v1`. */
  readonly type: string
  readonly subject: string
  /** First observation, RFC 3339 in UTC. The same on every retry. */
  readonly time: string
  readonly datacontenttype: 'application/json'
  /** Absolute URI of the JSON Schema of `data`. */
  readonly dataschema: string
  /** What must stay in order: the lane of the outbox, the partition key of a broker. */
  readonly partitionkey: string
  readonly data: JsonObject
  readonly [extension: string]: AttributeValue | JsonObject
}

/** The attributes of an event (everything but `data`) as name and canonical string: `true`, `17`, the string itself. */
export function attributesOf(event: CloudEvent): [name: string, value: string][] {
  const attributes: [string, string][] = []
  for (const [name, value] of Object.entries(event)) {
    if (name !== 'data' && typeof value !== 'object') attributes.push([name, String(value)])
  }
  return attributes
}
