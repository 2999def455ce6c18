import type { Delivery, Receiver } from 'rhea'
import type { ConnectionPort } from './connection-port.ts'
import { batchFormat, readBatch, readMessage, type AcceptedMessage } from './message.ts'
import { problems } from './problems.ts'
import { formatOf, outcomeState, type AmqpProblem } from './rhea-internals.ts'
import type { SendTarget } from './send-target.ts'

/** Sends that a peer may have on their way; topped up at the half. */
const window = 1000

export interface IncomingLink {
  readonly link: Receiver
  readonly target: SendTarget
  readonly port: ConnectionPort
}

/** Takes the sends of one link: judges, stores, and only then acknowledges. Gives the handler of its deliveries. */
export function takeSends(incoming: IncomingLink): (delivery: Delivery, raw: Buffer) => void {
  const { link, target, port } = incoming
  let used = 0
  link.add_credit(window)
  return (delivery, raw) => {
    used += 1
    if (used >= window / 2) {
      link.add_credit(used)
      used = 0
    }
    const delayMs = port.context.faults.delayFor(target.entity)
    if (delayMs > 0) setTimeout(() => takeSend(incoming, delivery, raw), delayMs).unref()
    else takeSend(incoming, delivery, raw)
  }
}

function takeSend(incoming: IncomingLink, delivery: Delivery, raw: Buffer): void {
  const { link, target, port } = incoming
  const oversized = port.takeOversized(delivery)
  const fault = port.context.faults.forSend(target.entity)
  if (fault?.kind === 'reject') {
    answer(delivery, fault.problem)
    return
  }
  const problem = fault === null || fault.stored ? store(incoming, formatOf(delivery), raw, oversized) : null
  if (fault?.kind === 'drop') port.drop()
  else if (fault?.kind === 'detach') port.links.detach(link, fault.problem)
  else if (fault === null) answer(delivery, problem)
}

function answer(delivery: Delivery, problem: AmqpProblem | null): void {
  delivery.update(true, outcomeState(problem === null ? { kind: 'accepted' } : { kind: 'rejected', error: problem }))
}

function store({ target, port }: IncomingLink, format: number, raw: Buffer, oversized: boolean): AmqpProblem | null {
  if (oversized || raw.length > target.maxMessageBytes) return problems.tooLarge(raw.length, target.maxMessageBytes)
  let batch: { messages: AcceptedMessage[]; partitionKey: string | null }
  try {
    batch = format === batchFormat ? readBatch(raw) : { messages: [readMessage(raw)], partitionKey: null }
  } catch (error) {
    // Whatever a decoder throws on foreign bytes says one thing: they are no message. The sender learns it, nobody else is concerned.
    port.context.remember('a message that cannot be decoded', error)
    return problems.undecodable(error instanceof Error ? error.message : String(error))
  }
  const problem = target.accept(batch.messages, batch.partitionKey)
  if (problem === null) port.context.journal.add(target.entity, batch.messages, format, port.context.now())
  return problem
}
