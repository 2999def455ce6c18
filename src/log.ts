import pino, { type Logger } from 'pino'

export type { Logger } from 'pino'

/**
 * The log: stderr, pretty on a terminal, one JSON object a line otherwise. Written synchronously, so that the last words before a crash are there.
 */
export async function createLog(level: string): Promise<Logger> {
  if (!process.stderr.isTTY) {
    return pino(
      { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ fd: 2, sync: true }),
    )
  }
  const { default: pretty } = await import('pino-pretty')
  return pino({ level, base: null }, pretty({ destination: 2, sync: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' }))
}
