import { attributesOf, type CloudEvent } from '../cloud-event.ts'
import { ForeshockError } from '../error.ts'

/**
 * An event in the binary mode of HTTP: the body is the data, each other attribute a `ce-` header, and `datacontenttype` is the Content-Type.
 * Throws `event_invalid` for an attribute name that CloudEvents does not allow, so nothing but a name can become the name of a header.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#31-binary-content-mode
 */
export function httpBinary(event: CloudEvent): { headers: Record<string, string>; body: string } {
  const headers: Record<string, string> = { 'content-type': event.datacontenttype }
  for (const [name, value] of attributesOf(event)) {
    if (!/^[a-z0-9]+$/.test(name)) {
      throw new ForeshockError('event_invalid', `expected an attribute name of a-z and 0-9, got ${JSON.stringify(name)}`)
    }
    if (name !== 'datacontenttype') headers[`ce-${name}`] = percentEncode(value)
  }
  return { headers, body: JSON.stringify(event.data) }
}

/**
 * Percent-encodes the UTF-8 bytes of everything outside U+0021..U+007E and of `"` and `%`. What is left are printable ASCII characters, so a
 * value cannot end its header. A lone surrogate has no UTF-8 form and becomes U+FFFD, as in every encoder.
 */
export function percentEncode(value: string): string {
  let encoded = ''
  for (const byte of Buffer.from(value, 'utf8')) {
    const plain = byte >= 0x21 && byte <= 0x7e && byte !== 0x22 && byte !== 0x25
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}
