import type { CloudEvent, Json } from '../cloud-event.ts'

/** What of the forwarder's own environment a command needs to run at all; everything else, secrets among it, stays behind. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'USER', 'SystemRoot', 'PATHEXT', 'TEMP']

export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The environment of a command: a minimum, the event's main fields, and what the operator gives, which wins. */
export function variablesOf(
  event: CloudEvent,
  env: Readonly<Record<string, string | undefined>>,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const minimum = inherited.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  const { data } = event
  const fields = {
    FORESHOCK_ID: event.id,
    FORESHOCK_TYPE: event.type,
    FORESHOCK_EVENT_ID: textOf(data['eventId']),
    FORESHOCK_EVENT_TYPE: textOf(data['eventType']),
    FORESHOCK_EVENT_STATUS: textOf(data['eventStatus']),
    FORESHOCK_NOT_BEFORE: textOf(data['notBefore']),
    FORESHOCK_RESOURCES: textOf(data['resources']),
  }
  return { PATH: defaultPath, ...Object.fromEntries(minimum), ...fields, ...given }
}

/** Always set, so that a script under `set -u` finds it: empty where the event has none, names joined by commas. An environment has no NUL. */
function textOf(value: Json | undefined): string {
  const text = Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : ''
  return text.replaceAll('\0', '\uFFFD')
}
