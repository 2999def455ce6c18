import type { z } from 'zod'
import type { CloudEvent } from '../cloud-event.ts'
import type { EventFormat } from '../contract.ts'
import { httpBinary } from '../encodings/http-binary.ts'
import { loadTemplate, type templateSchema } from './template.ts'

/** The event as a request: what it is and the body. */
export interface Encoded {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * How events become requests: by a template, in binary mode, or as text in a format. Throws `sink_unusable` for a template that cannot be used.
 */
export async function encoder(
  { mode, template }: { mode: 'structured' | 'binary'; template?: z.output<typeof templateSchema> | undefined },
  format: EventFormat,
): Promise<(event: CloudEvent) => Promise<Encoded>> {
  if (template !== undefined) {
    const filled = await loadTemplate(template)
    return async (event) => ({ headers: { 'content-type': filled.contentType }, body: await filled.write(event) })
  }
  if (mode === 'binary') return async (event) => httpBinary(event)
  return async (event) => ({ headers: { 'content-type': format.contentType }, body: format.write(event) })
}
