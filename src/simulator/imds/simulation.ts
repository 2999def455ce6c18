import type { ApiVersion } from '../../imds/api-versions.ts'
import { jsonAnswer, textAnswer, type Answer } from './answer.ts'
import { renderDocument, shownEvents } from './document.ts'
import { frameAt, frameBody } from './scenario-frame.ts'
import type { Scenario } from './scenario.ts'
import { parseStartRequests } from './start-requests.ts'
import { timelineAt, type Approval, type Moment } from './timeline.ts'

export interface SimulationOptions {
  readonly scenario: Scenario
  /** Scenario seconds per real second. */
  readonly speed: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Milliseconds, monotonic. */
  readonly clock: () => number
}

/** What one StartRequests asked for and got. */
export interface StartRequestsOutcome {
  readonly eventIds: readonly string[]
  readonly answer: Answer
}

/** A scenario under way: its clock, the approvals made so far, and a document put in its place by hand. Knows nothing of HTTP. */
export class Simulation {
  readonly scenario: Scenario
  readonly #speed: number
  readonly #clock: () => number
  readonly #startedAt: number
  readonly #startedClock: number
  readonly #approvals: Approval[] = []
  #byHand: unknown = null

  constructor({ scenario, speed, now, clock }: SimulationOptions) {
    this.scenario = scenario
    this.#speed = speed
    this.#clock = clock
    this.#startedAt = now()
    this.#startedClock = clock()
  }

  elapsedSeconds(): number {
    return ((this.#clock() - this.#startedClock) / 1000) * this.#speed
  }

  moment(): Moment {
    return timelineAt(this.scenario, this.elapsedSeconds(), this.#approvals)
  }

  /** Real milliseconds from now until a time of the scenario. */
  realMsUntil(seconds: number): number {
    return ((seconds - this.elapsedSeconds()) / this.#speed) * 1000
  }

  /** A string is the body verbatim, anything else its JSON; null gives the scenario back its place. */
  setDocument(document: unknown): void {
    this.#byHand = document
  }

  /** The answer to a GET. */
  events(version: ApiVersion): Answer {
    if (typeof this.#byHand === 'string') {
      return { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8' }, body: Buffer.from(this.#byHand) }
    }
    if (this.#byHand !== null) return jsonAnswer(200, this.#byHand)
    if (this.scenario.documents === null) return jsonAnswer(200, this.#rendered(version))
    const frame = frameAt(this.scenario.documents, this.elapsedSeconds())
    if (frame === undefined) return jsonAnswer(200, { DocumentIncarnation: this.scenario.incarnation, Events: [] })
    if (frame.noAnswer !== undefined) return { noAnswer: frame.noAnswer }
    const headers = { 'Content-Type': 'application/json; charset=utf-8', ...frame.headers }
    return { status: frame.status, headers, body: frameBody(frame) }
  }

  /** The answer to a POST. All or nothing: one unknown id among several approves none of them. */
  startRequests(version: ApiVersion, body: string): StartRequestsOutcome {
    const asked = parseStartRequests(version, body)
    if ('problem' in asked) return { eventIds: [], answer: jsonAnswer(400, { error: `Bad request. ${asked.problem}` }) }
    const { eventIds } = asked
    const known = this.#knownIds(version)
    const unknown = eventIds.filter((id) => !known.has(id.toLowerCase()))
    if (unknown.length > 0) {
      return { eventIds, answer: jsonAnswer(400, { error: `Bad request. Unknown EventId: ${unknown.join(', ')}` }) }
    }
    const atSeconds = this.elapsedSeconds()
    this.#approvals.push(...eventIds.map((eventId) => ({ eventId, atSeconds })))
    return { eventIds, answer: textAnswer(200, '') }
  }

  #rendered(version: ApiVersion): Record<string, unknown> {
    return renderDocument(this.moment(), version, (seconds) => this.#startedAt + (seconds / this.#speed) * 1000)
  }

  /** Ids in the document as it is answered now, lower-case. */
  #knownIds(version: ApiVersion): Set<string> {
    if (this.#byHand === null && this.scenario.documents === null) {
      return new Set(shownEvents(this.moment(), version).map(({ event }) => event.id.toLowerCase()))
    }
    const answer = this.events(version)
    return new Set('noAnswer' in answer ? [] : idsIn(answer.body.toString()))
  }
}

/** The EventIds of a verbatim body; none where it is no document. */
function idsIn(body: string): string[] {
  let document: unknown
  try {
    document = JSON.parse(body)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return []
  }
  const events: unknown = typeof document === 'object' && document !== null ? Reflect.get(document, 'Events') : undefined
  if (!Array.isArray(events)) return []
  return events.flatMap((event: unknown) => {
    const id: unknown = typeof event === 'object' && event !== null ? Reflect.get(event, 'EventId') : undefined
    return typeof id === 'string' ? [id.toLowerCase()] : []
  })
}
