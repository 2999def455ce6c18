import { lineOf } from '../../sinks/azure/failures.ts'
import { ForeshockError } from '../../sinks/error.ts'
import type { ControlConfig } from '../config/approvals.ts'
import { agent } from '../version.ts'
import { openServiceBus } from './service-bus.ts'

const peekMs = 15_000

/** Looks at the control queue without taking anything: a peek needs the right to receive, and no other. */
export async function examineControl(control: ControlConfig, env: NodeJS.ProcessEnv): Promise<{ ok: boolean; detail: string }> {
  try {
    const bus = await openServiceBus(control, { env, agent })
    try {
      const { subscription } = control
      const receiver =
        subscription === undefined ? bus.client.createReceiver(bus.entity) : bus.client.createReceiver(bus.entity, subscription)
      const [first] = await receiver.peekMessages(1, { abortSignal: AbortSignal.timeout(peekMs) })
      const where = subscription === undefined ? bus.entity : `${bus.entity}/${subscription}`
      return { ok: true, detail: `${where} can be read; ${first === undefined ? 'nothing waits' : 'messages wait'}` }
    } finally {
      await bus.close()
    }
  } catch (error) {
    return { ok: false, detail: error instanceof ForeshockError ? error.message : lineOf(error) }
  }
}
