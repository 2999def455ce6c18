import rhea from 'rhea'
import type { Directory } from './directory.ts'
import type { HubNode } from './hub-node.ts'
import type { Answer, Request } from './request-response.ts'

/** A hub or partition as an Event Hubs client asks for it. `allowed` tells whether the connection has a token for the hub. */
export function answerEventHubs(request: Request, directory: Directory, allowed: (entity: string) => boolean): Answer {
  const { name, type, partition } = request.properties
  if (request.operation !== 'READ' || typeof name !== 'string') {
    return { status: 400, description: `expected READ with a name, got "${request.operation}"`, condition: 'com.microsoft:argument-error' }
  }
  const hub = directory.hub(name)
  if (hub === null) return notFound(name)
  if (!allowed(hub.entity)) {
    return { status: 401, description: `there is no valid token for ${name}`, condition: 'amqp:unauthorized-access' }
  }
  if (type === 'com.microsoft:eventhub') return ok(describeHub(hub))
  if (type !== 'com.microsoft:partition') {
    return { status: 400, description: `unknown type ${String(type)}`, condition: 'com.microsoft:argument-error' }
  }
  const body = describePartition(hub, String(partition))
  return body === null ? notFound(`${name}/Partitions/${String(partition)}`) : ok(body)
}

function describeHub(hub: HubNode): Record<string, unknown> {
  const { types } = rhea
  const ids = hub.partitions.map((_, number) => String(number))
  return {
    name: hub.entity,
    type: 'com.microsoft:eventhub',
    created_at: types.wrap_timestamp(hub.createdAt),
    partition_count: types.wrap_int(ids.length),
    partition_ids: types.wrap_array(ids, stringCode, undefined),
    georeplication_factor: types.wrap_int(1),
  }
}

/** An empty partition has -1 as its last number and offset. */
function describePartition(hub: HubNode, partition: string): Record<string, unknown> | null {
  const { types } = rhea
  const number = hub.partitionNumber(partition)
  const log = number === null ? undefined : hub.partitions[number]
  if (log === undefined) return null
  const { last } = log
  return {
    name: hub.entity,
    type: 'com.microsoft:partition',
    partition,
    begin_sequence_number: types.wrap_long(log.beginSequenceNumber),
    last_enqueued_sequence_number: types.wrap_long(last?.sequenceNumber ?? -1),
    last_enqueued_offset: String(last?.offset ?? -1),
    last_enqueued_time_utc: types.wrap_timestamp(last?.enqueuedAt ?? 0),
    is_partition_empty: types.wrap_boolean(last === undefined),
  }
}

/** AMQP type code of a string with a one-byte length. */
const stringCode = 0xa1

function ok(body: Record<string, unknown>): Answer {
  return { status: 200, description: 'OK', body }
}

function notFound(what: string): Answer {
  return { status: 404, description: `The messaging entity '${what}' could not be found.`, condition: 'amqp:not-found' }
}
