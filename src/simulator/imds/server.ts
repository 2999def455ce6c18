import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SinkLog } from '../../../sinks/contract.ts'
import { ForeshockError } from '../../../sinks/error.ts'
import { defaultApiVersion } from '../../imds/api-versions.ts'
import { jsonAnswer, type Answer } from './answer.ts'
import { instanceApiVersions } from './api-versions.ts'
import { answerInstead, Faults } from './faults.ts'
import { listen, shut, urlOf } from './listen.ts'
import { RateLimit } from './rate-limit.ts'
import { readBody, respond } from './respond.ts'
import { route, targetOf, type Asked, type Routed } from './routes.ts'
import type { HandFault } from './scenario-fault.ts'
import type { Scenario, Vm } from './scenario.ts'
import { Simulation } from './simulation.ts'
import type { Moment } from './timeline.ts'

export interface ImdsSimulatorOptions {
  readonly scenario: Scenario
  /** Machine i of the scenario is answered on `port + i`; 0 picks a free one for each. */
  readonly port?: number
  /** Loopback unless it is given: everybody who reaches the port may approve. */
  readonly host?: string
  /** Scenario seconds per real second. */
  readonly speed?: number
  /** Requests per second and machine beyond which the answer is 429, without Retry-After; IMDS allows 5. Default: no limit. */
  readonly rateLimit?: number
  /** API versions of /metadata/instance, oldest first, where an older IMDS is to be played. */
  readonly instanceVersions?: readonly string[]
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Milliseconds, monotonic; drives the timeline. */
  readonly clock?: () => number
  readonly log: SinkLog
}

interface SeenRequest {
  readonly vm: string
  readonly method: string
  /** With the query. */
  readonly path: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

interface SeenPost {
  readonly vm: string
  readonly at: number
  readonly body: string
  /** What it asked for; empty where that could not be read. */
  readonly eventIds: readonly string[]
  /** The answer that was given or, where `fault` lost it, would have been; null: the scenario says that nothing comes. */
  readonly status: number | null
  readonly fault: string | null
}

export interface ImdsSimulator {
  /** Of the first machine. */
  readonly url: string
  /** One per machine of the scenario, in its order. */
  readonly urls: readonly string[]
  /** The newest 10,000. */
  readonly requests: readonly SeenRequest[]
  /** The newest 10,000 StartRequests. */
  readonly posts: readonly SeenPost[]
  elapsedSeconds(): number
  /** Incarnation and events as they stand. */
  moment(): Moment
  /** Approves as somebody else would, an ARM call or an agent. False: no such event is in the document. */
  approve(eventId: string): boolean
  /** From the next request on, before the faults of the scenario; replaces the one set before. */
  setFault(fault: HandFault): void
  /** Ends what `setFault` began. */
  clearFaults(): void
  /** Takes over from the scenario: a string is the body verbatim, anything else is answered as JSON; null gives it back. */
  setDocument(document: unknown): void
  /** `ended` when the story is over (the endpoint answers on), `closed` when it was closed before. */
  readonly finished: Promise<'ended' | 'closed'>
  /** Idempotent. Cuts what is still connected. */
  close(): Promise<void>
}

const kept = 10_000
/** setTimeout knows no longer waits. */
const longestWait = 2 ** 31 - 1

/**
 * An IMDS that plays a scenario, with one port per machine. Throws `usage` for options out of range, `unreachable` where a port cannot be had.
 */
export async function startImdsSimulator(options: ImdsSimulatorOptions): Promise<ImdsSimulator> {
  const { scenario, port = 0, host = '127.0.0.1', speed = 1, now = Date.now, clock = () => performance.now(), log } = options
  checkOptions(speed, port, scenario.vms.length)
  const simulation = new Simulation({ scenario, speed, now, clock })
  const faults = new Faults(scenario.faults)
  const limit = new RateLimit(options.rateLimit ?? Number.POSITIVE_INFINITY)
  const requests: SeenRequest[] = []
  const posts: SeenPost[] = []
  const closing = new AbortController()
  const ended = Promise.withResolvers<'ended' | 'closed'>()
  let wake = new AbortController()

  async function answer(request: IncomingMessage, response: ServerResponse, vm: Vm, index: number): Promise<void> {
    const { method = 'GET', url = '/' } = request
    const at = now()
    keep(requests, { vm: vm.name, method, path: url, at })
    const body = await readBody(request)
    if (body === null) return
    const target = targetOf(method, url)
    const fault = target === null ? null : faults.next(index, target, simulation.elapsedSeconds())
    const asked: Asked = { vm, method, url, headers: request.headers, body: typeof body === 'string' ? body : '' }
    const early: Answer | null = limit.spend(index, clock()) ? answerInstead(fault) : jsonAnswer(429, { error: 'Too many requests' })
    const refusal = early ?? (typeof body === 'string' ? null : body)
    const routed: Routed =
      refusal === null ? route(asked, simulation, options.instanceVersions ?? instanceApiVersions) : { answer: refusal, eventIds: [] }
    const status = 'noAnswer' in routed.answer ? null : routed.answer.status
    if (target === 'approvals') {
      keep(posts, { vm: vm.name, at, body: asked.body, eventIds: routed.eventIds, status, fault: fault?.kind ?? null })
      log.info({ vm: vm.name, eventIds: routed.eventIds, status }, 'StartRequests')
      if (status === 200) warnOfForeignDeletes(vm, routed.eventIds)
      wake.abort()
    } else {
      log.debug({ vm: vm.name, method, path: url, status, fault: fault?.kind ?? null }, 'request')
    }
    await respond(response, routed.answer, refusal === null ? fault : null, closing.signal)
  }

  /** A real machine approves only its own deletion; the simulator lets it pass, so that one process can play them all. */
  function warnOfForeignDeletes(vm: Vm, eventIds: readonly string[]): void {
    const asked = new Set(eventIds.map((id) => id.toLowerCase()))
    const own = (names: readonly string[]): boolean => names.some((name) => name.toLowerCase() === vm.name.toLowerCase())
    for (const { event } of simulation.moment().events) {
      if (event.type !== 'Terminate' || !asked.has(event.id.toLowerCase()) || own(event.resources)) continue
      log.warn({ vm: vm.name, eventId: event.id }, 'a machine approves the deletion of another one')
    }
  }

  /** Tells what happens when it happens, asked or not, and notices the end. */
  async function narrate(): Promise<void> {
    for (let told = ''; !closing.signal.aborted;) {
      wake = new AbortController()
      const moment = simulation.moment()
      const story = moment.events.map(({ event, status }) => `${event.type} ${event.id} ${status}`)
      const telling = [moment.incarnation, ...story].join()
      if (telling !== told) log.info({ incarnation: moment.incarnation, events: story }, 'document')
      told = telling
      if (moment.ended) ended.resolve('ended')
      const ms = moment.nextSeconds === null ? longestWait : simulation.realMsUntil(moment.nextSeconds)
      await pause(Math.min(Math.max(Math.ceil(ms), 1), longestWait), AbortSignal.any([wake.signal, closing.signal]))
    }
    ended.resolve('closed')
  }

  const servers = await listenForAll(scenario.vms, port, host, (vm, index) => (request, response) => {
    answer(request, response, vm, index).catch((error: unknown) => {
      log.error({ err: error }, 'the simulator failed')
      response.destroy()
    })
  })
  const urls = servers.map(urlOf)
  const narration = narrate()
  return {
    url: urls[0] ?? '',
    urls,
    requests,
    posts,
    elapsedSeconds: () => simulation.elapsedSeconds(),
    moment: () => simulation.moment(),
    approve(eventId) {
      const body = JSON.stringify({ StartRequests: [{ EventId: eventId }] })
      const { answer } = simulation.startRequests(defaultApiVersion, body)
      wake.abort()
      return !('noAnswer' in answer) && answer.status === 200
    },
    setFault: (fault) => faults.set(fault),
    clearFaults: () => faults.set(null),
    setDocument: (document) => simulation.setDocument(document),
    finished: ended.promise,
    async close() {
      closing.abort()
      await Promise.all(servers.map(shut))
      await narration
    },
  }
}

function checkOptions(speed: number, port: number, vms: number): void {
  if (!(speed > 0 && speed <= 1_000_000)) throw new ForeshockError('usage', `expected a speed above 0 and up to 1000000, got ${speed}`)
  if (!Number.isInteger(port) || port < 0 || port + vms - 1 > 65_535) {
    throw new ForeshockError('usage', `expected a port from 0 to ${65_536 - vms}, with one port for each of ${vms} machines, got ${port}`)
  }
}

/** All or none: where one port cannot be had, the others are given back. */
async function listenForAll(
  vms: readonly Vm[],
  port: number,
  host: string,
  listener: (vm: Vm, index: number) => Parameters<typeof listen>[0],
): Promise<Server[]> {
  const servers: Server[] = []
  try {
    for (const [index, vm] of vms.entries()) servers.push(await listen(listener(vm, index), port === 0 ? 0 : port + index, host))
    return servers
  } catch (error) {
    await Promise.all(servers.map(shut))
    throw error
  }
}

function keep<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > kept) list.shift()
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
