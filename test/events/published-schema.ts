import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { CloudEvent as OtherReader } from 'cloudevents'
import type { CloudEvent } from '../../sinks/cloud-event.ts'
import { eventSchemas } from '../../src/events/schemas.ts'

const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true })
formats.default(ajv)
for (const schema of Object.values(eventSchemas())) ajv.addSchema(schema)

/** What two readers that are not ours find wrong: the published schema with `data`, the reference SDK with the rest. */
export function faultsOf(event: CloudEvent): string[] {
  const faults: string[] = []
  if (!ajv.validate(event.dataschema, event.data)) faults.push(ajv.errorsText())
  try {
    new OtherReader({ ...event }).validate()
  } catch (error) {
    faults.push(String(error))
  }
  return faults
}
