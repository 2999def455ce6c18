/** Names and numbers of OpenTelemetry. Source: https://github.com/cloudevents/spec/blob/main/cloudevents/extensions/severity.md */
export interface Severity {
  readonly text: 'INFO' | 'WARN' | 'ERROR'
  readonly number: 9 | 13 | 17
}

const info: Severity = { text: 'INFO', number: 9 }
const warn: Severity = { text: 'WARN', number: 13 }
const error: Severity = { text: 'ERROR', number: 17 }

const any = '*'

/** Top to bottom: the first row that matches decides. */
const rows: readonly (readonly [status: string, eventType: string, severity: Severity])[] = [
  ['scheduled', 'freeze', info],
  ['scheduled', 'preempt', error],
  ['scheduled', any, warn],
  ['started', 'freeze', warn],
  ['started', any, error],
  ['completed', any, info],
  ['cancelled', any, info],
  ['vanished', any, warn],
]

/** By type and status alone, so that every observer says the same. An unknown status is a warning. */
export function severityOfEvent(status: string, eventType: string): Severity {
  const type = eventType.toLowerCase()
  return rows.find((row) => row[0] === status && (row[1] === any || row[1] === type))?.[2] ?? warn
}

export type ForwarderKind = 'started' | 'stopping' | 'heartbeat' | 'imds-unreachable' | 'imds-recovered'

export const forwarderSeverity: Readonly<Record<ForwarderKind, Severity>> = {
  started: info,
  stopping: info,
  heartbeat: info,
  'imds-unreachable': error,
  'imds-recovered': info,
}

export const approvalSeverity: Readonly<Record<'relayed' | 'refused' | 'failed', Severity>> = {
  relayed: info,
  refused: warn,
  failed: error,
}
