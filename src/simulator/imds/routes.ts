import { apiVersions } from '../../imds/api-versions.ts'
import { jsonAnswer, textAnswer, type Answer } from './answer.ts'
import { isApiVersion } from './api-versions.ts'
import type { Target } from './faults.ts'
import { instanceMetadata, metadataAt, metadataText } from './instance.ts'
import type { Vm } from './scenario.ts'
import type { Simulation } from './simulation.ts'

/** A request as it came. */
export interface Asked {
  readonly vm: Vm
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** As node:http has them: lower-case names, repeated ones joined. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

export interface Routed {
  readonly answer: Answer
  /** Of a StartRequests POST that got as far as being read. */
  readonly eventIds: readonly string[]
}

/** What a request is after; null: nothing that IMDS has. */
export function targetOf(method: string, url: string): Target | null {
  const path = pathOf(url)
  if (path === '/metadata/scheduledevents') return method === 'POST' ? 'approvals' : 'events'
  return path === '/metadata/instance' || path.startsWith('/metadata/instance/') ? 'instance' : null
}

/** Checks a request the way IMDS does, then answers it. `instanceVersions`: the API versions of /metadata/instance, oldest first. */
export function route(asked: Asked, simulation: Simulation, instanceVersions: readonly string[]): Routed {
  const path = pathOf(asked.url)
  const target = targetOf(asked.method, asked.url)
  if (target === null) return refused(jsonAnswer(404, { error: `Not found. Path = ${path}` }))
  if (asked.method !== 'GET' && target !== 'approvals') {
    return refused(jsonAnswer(405, { error: `Http method isn't allowed: Path = ${path}, Method = ${asked.method}` }))
  }
  const query = new URL(asked.url, 'http://imds.invalid').searchParams
  const version = query.get('api-version')
  const badRequest = checkRequest(asked, query, target)
  if (badRequest !== null) return refused(textAnswer(400, badRequest))
  if (target === 'instance') {
    if (version === null || !instanceVersions.includes(version)) return refused(badVersion(instanceVersions))
    return refused(instanceAnswer(instanceMetadata(simulation.scenario, asked.vm), path, query.get('format')))
  }
  if (!isApiVersion(version)) return refused(badVersion(apiVersions))
  return target === 'approvals' ? simulation.startRequests(version, asked.body) : refused(simulation.events(version))
}

/** An answer that approves nothing. */
const refused = (answer: Answer): Routed => ({ answer, eventIds: [] })

const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').replace(/(?<=.)\/$/, '')

/** What proves that the request came from this very machine, unredirected and unforwarded. */
function checkRequest({ headers }: Asked, query: URLSearchParams, target: Target): string | null {
  if (headers['x-forwarded-for'] !== undefined) return 'Bad request. X-Forwarded-For is not allowed: no proxy may stand in between'
  const names = [...query.keys()].map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) return 'Bad request. A query parameter is given more than once'
  const preview = target !== 'instance' && query.get('api-version') === '2017-03-01'
  if (!preview && String(headers['metadata']).toLowerCase() !== 'true') return 'Bad request. Required metadata header not specified'
  return null
}

function badVersion(known: readonly string[]): Answer {
  return jsonAnswer(400, {
    error: 'Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds',
    'newest-versions': known.slice(-3).toReversed(),
  })
}

/** JSON for branches by default; leaves come as text alone, and only where it is asked for. */
function instanceAnswer(metadata: Record<string, unknown>, path: string, format: string | null): Answer {
  const part = metadataAt(metadata, path.split('/').slice(3))
  if (part === undefined) return jsonAnswer(404, { error: `Not found. Path = ${path}` })
  if (format === 'text') return textAnswer(200, metadataText(part))
  if (format !== null && format !== 'json') return jsonAnswer(400, { error: `Bad request. Format must be json or text, got ${format}` })
  if (typeof part !== 'object') return jsonAnswer(400, { error: 'Bad request. A leaf has no JSON: ask with format=text' })
  return jsonAnswer(200, part)
}
