const longest = 160

/** The beginning of a body as one printable line in quotes, for a message to people. */
export function excerpt(body: Uint8Array): string {
  const text = new TextDecoder()
    .decode(body.subarray(0, 4 * longest))
    // eslint-disable-next-line no-control-regex -- control characters of a foreign body have no place in a log line
    .replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .trim()
  return JSON.stringify(text.length > longest ? `${text.slice(0, longest)}…` : text)
}
