import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { z } from 'zod'

export interface BenchBroker {
  readonly connectionString: string
  /** Resolves with when the entity accepted its message number `count`, in milliseconds since the epoch. */
  accepted(entity: 'hub' | 'topic', count: number): Promise<number>
  stop(): void
}

const hello = z.object({ connectionString: z.string() })
const told = z.object({ entity: z.string(), count: z.number(), at: z.number() })

export async function startBenchBroker(): Promise<BenchBroker> {
  const child = fork(join(import.meta.dirname, 'broker-process.ts'))
  const [first] = await once(child, 'message')
  const waiting = new Map<string, (at: number) => void>()
  child.on('message', (message) => {
    const { entity, count, at } = told.parse(message)
    waiting.get(`${entity} ${count}`)?.(at)
    waiting.delete(`${entity} ${count}`)
  })
  return {
    connectionString: hello.parse(first).connectionString,
    accepted(entity, count) {
      const { promise, resolve } = Promise.withResolvers<number>()
      waiting.set(`${entity} ${count}`, resolve)
      child.send({ entity, count })
      return promise
    },
    stop: () => child.disconnect(),
  }
}

/** The clock of `accepted`, which two processes share. */
export const wallClock = (): number => performance.timeOrigin + performance.now()
