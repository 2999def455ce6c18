import type { CloudEvent, Json } from '../cloud-event.ts'
import type { EventFormat, FormatName } from '../contract.ts'
import { structuredContentType, structuredJson } from '../encodings/structured.ts'
import { azureResourceLog } from './azure-resource-log.ts'
import { ecs } from './ecs.ts'
import type { Reporter } from './reporter.ts'
import { splunkHec } from './splunk-hec.ts'

const shapes: Readonly<Record<Exclude<FormatName, 'cloudevents'>, (event: CloudEvent, self: Reporter | null) => Json>> = {
  'azure-resource-log': azureResourceLog,
  ecs,
  'splunk-hec': splunkHec,
}

/** `self` gives what this machine knows of itself; null until that is known. */
export function eventFormat(name: FormatName, self: () => Reporter | null): EventFormat {
  if (name === 'cloudevents') return { name, contentType: structuredContentType, write: structuredJson }
  const shape = shapes[name]
  return { name, contentType: 'application/json', write: (event) => JSON.stringify(shape(event, self())) }
}
