export type SchemaName = 'scheduledevent' | 'forwarder' | 'approval'

/** The `dataschema` of an event, and the `$id` of the schema itself. */
export const dataschemaOf = (name: SchemaName): string => `https://foreshock.dev/schemas/${name}.v1.json`
