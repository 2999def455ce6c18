import type { Delivery, Receiver } from 'rhea'
import { audiencePath, parseAddress } from './address.ts'
import { answerPutToken, entityOf } from './cbs.ts'
import { addressOf, type ConnectionPort } from './connection-port.ts'
import { answerEventHubs } from './event-hubs-management.ts'
import { takeSends } from './incoming.ts'
import { answerRequest, type RequestHandler } from './request-response.ts'
import { setAttachField } from './rhea-internals.ts'
import { answerServiceBus } from './service-bus-management.ts'

/** Requests that a peer may have on their way on one link. */
const requestWindow = 100

/** A peer wants to send: messages to an entity, or requests to `$cbs` or a management node. */
export function attachIncoming(link: Receiver, port: ConnectionPort): void {
  const text = addressOf(link.target)
  const address = parseAddress(text)
  const { directory } = port.context
  if (address.kind === 'cbs') {
    serveRequests(link, null, port, (request) => answerPutToken(request, port.claims, port.context))
  } else if (address.kind !== 'management') {
    attachSends(link, text, port)
  } else if (address.entity === null || directory.hub(address.entity) !== null) {
    // Which hub it is about stands in each request.
    serveRequests(link, '$management', port, (request) => answerEventHubs(request, directory, port.admission.reaches))
  } else {
    attachEntityManagement(link, text, address.entity, port)
  }
}

function attachSends(link: Receiver, text: string, port: ConnectionPort): void {
  const target = port.context.directory.sendTarget(parseAddress(text))
  const problem = port.admission.refusal(text, target?.entity ?? null, 'Send')
  if (target === null || problem !== null) {
    if (problem !== null) port.links.refuse(link, problem)
    return
  }
  link.set_target({ address: text })
  link.set_source({ address: addressOf(link.source) })
  setAttachField(link, 'max_message_size', target.maxMessageBytes)
  const onDelivery = takeSends({ link, target, port })
  port.links.serve({ link, path: audiencePath(text), right: 'Send', entity: target.entity, close() {}, onDelivery })
}

function attachEntityManagement(link: Receiver, text: string, entity: string, port: ConnectionPort): void {
  const address = parseAddress(entity)
  const { directory } = port.context
  const node = address.kind === 'entity' ? (directory.queue(address.path, address.deadLetters) ?? directory.topic(address.path)) : null
  const problem = port.admission.refusal(text, node === null ? null : entityOf(entity), null)
  if (node === null || problem !== null) {
    if (problem !== null) port.links.refuse(link, problem)
    return
  }
  const managed = { node, context: port.context, ownerOf: (linkName: string) => port.owner(linkName) }
  serveRequests(link, text, port, (request) => answerServiceBus(request, managed))
}

function serveRequests(link: Receiver, address: string | null, port: ConnectionPort, handler: RequestHandler): void {
  link.set_target({ address: addressOf(link.target) })
  link.set_source({ address: addressOf(link.source) })
  link.add_credit(requestWindow)
  const onDelivery = (delivery: Delivery, raw: Buffer): void => {
    delivery.accept()
    link.add_credit(1)
    answerRequest(raw, handler, (replyTo) => port.replyLink(replyTo)).catch((error: unknown) => {
      port.context.remember('answering a request', error)
      port.drop()
    })
  }
  const path = address?.toLowerCase() ?? null
  port.links.serve({ link, path, right: null, entity: path === null ? '' : entityOf(path), close() {}, onDelivery })
}
