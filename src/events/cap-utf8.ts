/** The longest beginning of `text` that is at most `bytes` of UTF-8 and ends on a character boundary. */
export function capUtf8(text: string, bytes: number): string {
  const encoded = Buffer.from(text, 'utf8')
  if (encoded.length <= bytes) return text
  let end = bytes
  // 10xxxxxx continues a character: the cut moves back to where one begins.
  while (end > 0 && ((encoded[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end -= 1
  return encoded.toString('utf8', 0, end)
}
