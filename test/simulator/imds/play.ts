import { request, type IncomingHttpHeaders } from 'node:http'
import { afterEach } from 'vitest'
import type { SinkLog } from '../../../sinks/contract.ts'
import { parseScenario } from '../../../src/simulator/imds/scenario-file.ts'
import type { Scenario } from '../../../src/simulator/imds/scenario.ts'
import { startImdsSimulator, type ImdsSimulator, type ImdsSimulatorOptions } from '../../../src/simulator/imds/server.ts'

export const silent: SinkLog = { debug() {}, info() {}, warn() {}, error() {} }

const opened: (() => Promise<unknown>)[] = []

/** Ends something when the test is over, before it is asked what it left open. */
export function afterwards(end: () => Promise<unknown>): void {
  opened.push(end)
}

afterEach(async () => {
  for (let end = opened.pop(); end !== undefined; end = opened.pop()) await end()
})

/** 2026-05-21T10:00:00Z, a Thursday. */
export const epoch = Date.UTC(2026, 4, 21, 10)

export function scenarioOf(keys: object): Scenario {
  return parseScenario(JSON.stringify({ name: 'test', ...keys }), 'test.yaml')
}

export interface Played extends ImdsSimulator {
  /** Moves the clock of the scenario; it stands still otherwise. */
  to(realSeconds: number): void
}

/** A simulator whose clocks move only when they are told to, closed when the test is over. */
export async function play(scenario: Scenario, options: Partial<ImdsSimulatorOptions> = {}): Promise<Played> {
  let ms = 0
  const simulator = await startImdsSimulator({ scenario, now: () => epoch + ms, clock: () => ms, log: silent, ...options })
  afterwards(() => simulator.close())
  return Object.assign(simulator, {
    to(realSeconds: number) {
      ms = realSeconds * 1000
    },
  })
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
}

export interface Question {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly signal?: AbortSignal
}

/** One request on a connection of its own, with no header but those given. */
export function ask(url: string, { method = 'GET', headers = { Metadata: 'true' }, body, signal }: Question = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false, ...(signal && { signal }) }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text: bytes.toString() })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

export const eventsPath = (version = '2020-07-01'): string => `/metadata/scheduledevents?api-version=${version}`

export async function events(url: string, version?: string): Promise<unknown> {
  return JSON.parse((await ask(url + eventsPath(version))).text)
}

export function approve(url: string, ...ids: string[]): Promise<Reply> {
  const body = JSON.stringify({ StartRequests: ids.map((EventId) => ({ EventId })) })
  return ask(url + eventsPath(), { method: 'POST', body })
}
