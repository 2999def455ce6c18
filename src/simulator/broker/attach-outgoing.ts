import type { Sender } from 'rhea'
import { readWishes, type ReceiverWishes } from './attach-filter.ts'
import { audiencePath, parseAddress, type Address } from './address.ts'
import { acceptSession } from './attach-session.ts'
import { entityOf } from './cbs.ts'
import { addressOf, type ConnectionPort } from './connection-port.ts'
import { parseSelector, type StartPosition } from './event-log.ts'
import { grantSource, serveQueue } from './serve-queue.ts'
import { HubReader } from './hub-reader.ts'
import { problems } from './problems.ts'
import { answerEveryDrain } from './rhea-internals.ts'

/** A peer wants to receive: messages of an entity, or the answers to its requests. */
export function attachOutgoing(link: Sender, port: ConnectionPort): void {
  const text = addressOf(link.source)
  const address = parseAddress(text)
  answerEveryDrain(link)
  if (address.kind === 'consumer') attachConsumer(link, address, text, port)
  else if (address.kind === 'entity' || address.kind === 'partition') attachQueueReceiver(link, address, text, port)
  else attachReplies(link, address.kind === 'cbs' ? null : text.toLowerCase(), port)
}

function attachReplies(link: Sender, path: string | null, port: ConnectionPort): void {
  link.set_source({ address: addressOf(link.source) })
  link.set_target({ address: addressOf(link.target) })
  port.links.serve({ link, path, right: null, entity: path === null ? '' : entityOf(path), close() {} })
}

function attachConsumer(link: Sender, address: Address & { kind: 'consumer' }, text: string, port: ConnectionPort): void {
  const hub = port.context.directory.hub(address.hub)
  const number = hub?.hasGroup(address.group) === true ? hub.partitionNumber(address.partition) : null
  const log = number === null ? undefined : hub?.partitions[number]
  const problem = port.admission.refusal(text, log === undefined ? null : (hub?.entity ?? null), 'Listen')
  if (hub === null || number === null || log === undefined || problem !== null) {
    if (problem !== null) port.links.refuse(link, problem)
    return
  }
  const wishes = readWishes(link)
  const start = startOf(wishes)
  if (start === null) {
    port.links.refuse(link, problems.badFilter(wishes.selector ?? ''))
    return
  }
  const reader = new HubReader({
    sender: link,
    hub,
    group: address.group,
    partition: number,
    log,
    from: log.resolve(start),
    epoch: wishes.epoch,
    name: wishes.receiverName ?? link.name,
    metrics: wishes.metrics,
    now: port.context.now,
    detach: (reason) => port.links.detach(link, reason),
  })
  const refused = hub.join(address.group, number, reader)
  if (refused !== null) {
    port.links.refuse(link, refused)
    return
  }
  grantSource(link, text)
  port.links.serve({
    link,
    path: audiencePath(text),
    right: 'Listen',
    entity: hub.entity,
    close: () => reader.close(),
    onFlow: (draining) => reader.flow(draining),
  })
}

/** Without a filter a consumer gets what comes from now on; null where the filter cannot be read. */
function startOf({ selector }: ReceiverWishes): StartPosition | null {
  return selector === null ? { by: 'latest' } : parseSelector(selector)
}

function attachQueueReceiver(link: Sender, address: Address, text: string, port: ConnectionPort): void {
  const node = address.kind === 'entity' ? port.context.directory.queue(address.path, address.deadLetters) : null
  const problem = port.admission.refusal(text, node === null ? null : entityOf(text), 'Listen')
  if (node === null || problem !== null) {
    if (problem !== null) port.links.refuse(link, problem)
    return
  }
  const { session, timeoutMs } = readWishes(link)
  const { requiresSession } = node.queue.options
  if (requiresSession !== (session !== undefined)) {
    port.links.refuse(link, requiresSession ? problems.sessionsOnly(node.entity) : problems.noSessions(node.entity))
  } else if (session === undefined) {
    grantSource(link, text)
    serveQueue({ link, node, address: text, sessionId: null, port })
  } else {
    acceptSession({ link, node, address: text, wanted: session, timeoutMs, port })
  }
}
