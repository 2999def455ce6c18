import rhea, { type Sender } from 'rhea'
import { audiencePath } from './address.ts'
import { dotnetTicks } from './attach-filter.ts'
import { entityOf } from './cbs.ts'
import type { ConnectionPort } from './connection-port.ts'
import { problems } from './problems.ts'
import type { QueueNode } from './queue-node.ts'
import { holdAttach, setAttachField } from './rhea-internals.ts'
import { grantSource, serveQueue } from './serve-queue.ts'

export interface SessionRequest {
  readonly link: Sender
  readonly node: QueueNode
  readonly address: string
  /** Null for the next session that is free. */
  readonly wanted: string | null
  readonly timeoutMs: number
  readonly port: ConnectionPort
}

/** A named session is granted or refused at once; a wish for any session is answered when one is free, or when its time is up. */
export function acceptSession(request: SessionRequest): void {
  const first = attempt(request)
  if (first === 'taken') request.port.links.refuse(request.link, problems.sessionTaken(request.wanted ?? ''))
  if (first === 'none') wait(request)
}

function attempt({ link, node, address, wanted, port }: SessionRequest): 'granted' | 'taken' | 'none' {
  const session = node.queue.acceptSession(wanted, port.owner(link.name))
  if (session === 'taken' || session === 'none') return session
  grantSource(link, address, session.id)
  setAttachField(link, 'properties', { 'com.microsoft:locked-until-utc': rhea.types.wrap_long(dotnetTicks(session.until)) })
  serveQueue({ link, node, address, sessionId: session.id, port })
  return 'granted'
}

function wait(request: SessionRequest): void {
  const { link, node, address, timeoutMs, port } = request
  holdAttach(link)
  const stop = node.seekSession(() => {
    if (attempt(request) !== 'granted') return false
    clearTimeout(timer)
    link.open()
    return true
  })
  const timer = setTimeout(() => {
    // Ends the wait, opens the link, and closes it with the reason.
    port.links.detach(link, problems.noSession())
  }, timeoutMs).unref()
  port.links.serve({
    link,
    path: audiencePath(address),
    right: 'Listen',
    entity: entityOf(address),
    close: () => {
      stop()
      clearTimeout(timer)
      // A peer sees a detach only after the attach that it is about, also where it gave up waiting itself.
      if (!port.isClosed()) link.open()
    },
  })
}
