import type { Delivery, link as Link } from 'rhea'
import type { SinkLog } from '../../../sinks/contract.ts'
import type { Disposition } from './queue-receiver.ts'
import type { AmqpProblem } from './rhea-internals.ts'
import type { Right } from './token.ts'

/** What stands behind an open link. */
export interface Served {
  readonly link: Link
  /** Lower-cased address that a claim must cover; null for `$cbs`, which needs none. */
  readonly path: string | null
  /** Null where any claim for the path will do. */
  readonly right: Right | null
  /** Empty for `$cbs` and the management node of the namespace. */
  readonly entity: string
  /** Gives back what the link held: called once, whichever side ended it. */
  close(): void
  /** On links that take messages. */
  readonly onDelivery?: (delivery: Delivery, raw: Buffer) => void
  /** On links that give messages. */
  readonly onFlow?: (draining: boolean) => void
  readonly onDisposition?: (disposition: Disposition, delivery: Delivery) => void
}

/** The open links of one connection. */
export class Links {
  readonly #served = new Map<Link, Served>()
  readonly #log: SinkLog

  constructor(log: SinkLog) {
    this.#log = log
  }

  get size(): number {
    return this.#served.size
  }

  find(link: Link | undefined): Served | undefined {
    return link === undefined ? undefined : this.#served.get(link)
  }

  /** Puts `served` behind its link, in place of what stood there. */
  serve(served: Served): void {
    this.#served.set(served.link, served)
  }

  /** The peer ended the link, or its session or socket is gone. */
  forget(link: Link): void {
    const served = this.#served.get(link)
    this.#served.delete(link)
    served?.close()
  }

  forgetWhere(applies: (served: Served) => boolean): void {
    for (const served of this.#served.values()) if (applies(served)) this.forget(served.link)
  }

  /** Ends an open link and tells why. */
  detach(link: Link, problem: AmqpProblem): void {
    this.forget(link)
    link.close({ condition: problem.condition, description: problem.description })
  }

  /** Detaches the links that `problemOf` has a problem for. Gives their number. */
  detachWhere(problemOf: (served: Served) => AmqpProblem | null): number {
    let detached = 0
    for (const served of this.#served.values()) {
      const problem = problemOf(served)
      if (problem === null) continue
      this.detach(served.link, problem)
      detached += 1
    }
    return detached
  }

  /** The answer to an attach that cannot be: an attach without source or target, and a detach that says why. */
  refuse(link: Link, problem: AmqpProblem): void {
    this.#log.debug({ link: link.name, ...problem }, 'a link was refused')
    link.close({ condition: problem.condition, description: problem.description })
  }
}
