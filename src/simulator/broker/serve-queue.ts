import type { Sender } from 'rhea'
import { audiencePath } from './address.ts'
import { grantedFilter } from './attach-filter.ts'
import { entityOf } from './cbs.ts'
import { addressOf, type ConnectionPort } from './connection-port.ts'
import { QueueReceiver } from './queue-receiver.ts'
import type { QueueNode } from './queue-node.ts'
import { setAttachField } from './rhea-internals.ts'

export interface QueueLink {
  readonly link: Sender
  readonly node: QueueNode
  readonly address: string
  readonly sessionId: string | null
  readonly port: ConnectionPort
}

/** Puts a receiver of the queue behind the link. */
export function serveQueue({ link, node, address, sessionId, port }: QueueLink): void {
  const receiver = new QueueReceiver({
    owner: port.owner(link.name),
    sender: link,
    node,
    sessionId,
    deletes: link.snd_settle_mode === 1,
    detach: (reason) => port.links.detach(link, reason),
  })
  port.links.serve({
    link,
    path: audiencePath(address),
    right: 'Listen',
    entity: entityOf(address),
    close: () => receiver.close(),
    onFlow: (draining) => receiver.flow(draining),
    onDisposition: (disposition, delivery) => receiver.settle(disposition, delivery),
  })
}

/** Fills in the attach reply of a link that is granted. */
export function grantSource(link: Sender, address: string, sessionId?: string): void {
  link.set_source(sessionId === undefined ? { address } : { address, filter: grantedFilter(sessionId) })
  link.set_target({ address: addressOf(link.target) })
  // The settlement modes are the receiver's choice: peek-lock and receive-and-delete differ in nothing else.
  setAttachField(link, 'snd_settle_mode', link.snd_settle_mode)
  setAttachField(link, 'rcv_settle_mode', link.rcv_settle_mode)
}
