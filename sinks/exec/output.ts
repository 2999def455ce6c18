import type { Readable } from 'node:stream'

/** Characters that are kept of what a command writes. */
const capChars = 16 * 1024

/** What a command wrote, up to the cap; the rest is read and dropped, so that the command is never held up by it. */
export interface Output {
  text(): string
}

export function collect(streams: readonly Readable[]): Output {
  let kept = ''
  let dropped = 0
  for (const stream of streams) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      const room = Math.max(0, capChars - kept.length)
      kept += chunk.slice(0, room)
      dropped += Math.max(0, chunk.length - room)
    })
    // A pipe that breaks ends the output, nothing more.
    stream.on('error', () => {})
  }
  return { text: () => (dropped === 0 ? kept : `${kept} … ${dropped} more`) }
}
