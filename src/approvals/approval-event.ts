import type { AttributeValue, CloudEvent } from '../../sinks/cloud-event.ts'
import { buildEvent } from '../events/build.ts'
import { capUtf8 } from '../events/cap-utf8.ts'
import { digestOf } from '../lifecycle/digest.ts'
import { fitData } from '../events/fit-data.ts'
import { type Identity, observerOf, sourceOf } from '../events/identity.ts'
import { approvalId, partitionKey } from '../events/ids.ts'
import type { EventContext } from '../events/scheduled-event.ts'
import type { ApprovalData } from '../events/schemas.ts'
import { approvalSeverity } from '../events/severity.ts'
import type { ScheduledEvent } from '../lifecycle/model.ts'
import { outcomeOf, type Code } from './reason.ts'
import type { ApprovalRequest, Wanted } from './request.ts'

const maxDetailBytes = 2048
/** Azure's message ids have at most 128 characters. */
const maxMessageId = 256

/** What is given up until the event fits into 64 KiB: names of a full placement group. The digest covers them all the same. */
const cuts: readonly ((data: ApprovalData) => ApprovalData)[] = [200, 20, 0].map(
  (most) => (data) => (data.resources === null ? data : { ...data, resources: data.resources.slice(0, most) }),
)

/** What came of one request for one event. */
export interface Outcome {
  readonly code: Code
  readonly detail: string
  readonly request: ApprovalRequest
  /** Identifies the request on this machine. */
  readonly requestKey: string
  /** null where the request could not be read. */
  readonly wanted: Wanted | null
  /** As it stood when it was decided; null where it was not seen. */
  readonly event: ScheduledEvent | null
  /** POSTs that were begun. */
  readonly attempts: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The event that tells what came of an approval. Throws `event_invalid`. */
export function buildApprovalEvent(outcome: Outcome, { prefix, scope, identity }: EventContext): CloudEvent {
  const { code, request, requestKey, wanted, event, at } = outcome
  const source = sourceOf(identity, scope)
  const kind = outcomeOf(code)
  const severity = approvalSeverity[kind]
  const key = wanted === null ? null : wanted.eventId.toLowerCase()
  const machine = machineOf(identity)
  const extensions: Record<string, AttributeValue | null> = {
    azeventtype: event?.eventType ?? null,
    azeventsource: event?.eventSource ?? null,
    azobserver: observerOf(identity),
    severitytext: severity.text,
    severitynumber: severity.number,
    correlationid: key === null ? null : partitionKey(key),
    causationid: attributeText(request.messageId),
  }
  return buildEvent({
    id: approvalId(key, requestKey, machine),
    source,
    type: `${prefix}.approval.${kind}.v1`,
    // A message that cannot be read is about no event that we know.
    subject: key === null ? `${source}/scheduledevents` : `${source}/scheduledevents/${key}`,
    at,
    schema: 'approval',
    partitionkey: key === null ? machine : partitionKey(key),
    extensions,
    data: fitData(dataOf(outcome), cuts),
  })
}

function dataOf({ code, detail, request, wanted, event, attempts }: Outcome): ApprovalData {
  return {
    eventId: wanted?.eventId ?? null,
    code,
    via: request.via,
    requestedBy: request.requestedBy,
    reason: request.reason,
    messageId: request.messageId?.toWellFormed().slice(0, maxMessageId) ?? null,
    issuer: request.signed?.issuer ?? null,
    keyIds: request.signed?.signatures.flatMap(({ kid }) => kid ?? []) ?? [],
    digest: wanted?.digest ?? (event === null ? null : digestOf(event)),
    resources: copied(event?.resources ?? wanted?.resources ?? null),
    eventType: event?.eventType ?? null,
    attempts,
    detail: capUtf8(detail.toWellFormed(), maxDetailBytes),
  }
}

const copied = (names: readonly string[] | null): string[] | null => (names === null ? null : [...names])

/** Whatever tells this machine from its neighbours. */
const machineOf = ({ vmId, vmName }: Identity): string => vmId ?? vmName ?? 'unknown'

/** A message id may be any text; what no attribute can hold stands in the data alone. */
function attributeText(text: string | null): string | null {
  const usable =
    text !== null && text.trim() !== '' && text.length <= maxMessageId && !/[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u.test(text)
  return usable ? text : null
}
