import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import { eventSchemas } from '../../src/events/schemas.ts'

const ajv = new Ajv2020({ allErrors: true })
formats.default(ajv)

describe('the published schemas', () => {
  // `vitest run -u` writes them anew.
  it.each(Object.entries(eventSchemas()))('config/schemas/event/%s.v1.json is what the types generate', async (name, schema) => {
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(`../../config/schemas/event/${name}.v1.json`)
    expect(schema.$id).toBe(`https://foreshock.dev/schemas/${name}.v1.json`)
  })

  it('describe the data of an approval event', () => {
    const validate = ajv.compile(eventSchemas().approval)
    const approval = {
      eventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
      code: 'ok',
      via: 'queue',
      requestedBy: 'alice',
      reason: null,
      messageId: 'm-1',
      issuer: null,
      keyIds: [],
      digest: '1d105773e80d3ccc',
      resources: ['web_0'],
      eventType: 'Reboot',
      attempts: 1,
      detail: null,
    }
    expect(validate(approval)).toBe(true)
    expect(validate({ ...approval, via: 'telepathy' })).toBe(false)
    expect(validate({ ...approval, code: undefined })).toBe(false)
  })
})
