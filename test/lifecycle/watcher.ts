import { parseDocument } from '../../src/imds/document.ts'
import { diff } from '../../src/lifecycle/differ.ts'
import type { DiffResult, EndTransition, Reading, RememberedState, StateTransition, Transition } from '../../src/lifecycle/model.ts'
import { emptyState, markApproved } from '../../src/lifecycle/remembered.ts'

export const seconds = 1000
export const hours = 60 * 60 * seconds
export const start = Date.parse('2026-05-21T10:00:00Z')

/** An entry of `Events` as IMDS writes it; later parts win. */
export const entry = (...parts: object[]): object =>
  Object.assign(
    {
      EventId: 'C7061BAC-AFDC-4513-B24B-AA5F13A16123',
      EventStatus: 'Scheduled',
      EventType: 'Reboot',
      ResourceType: 'VirtualMachine',
      Resources: ['web_0', 'web_1'],
      NotBefore: 'Thu, 21 May 2026 10:15:00 GMT',
      Description: 'Host server is undergoing maintenance.',
      EventSource: 'Platform',
      DurationInSeconds: 9,
    },
    ...parts,
  )

export const key = 'c7061bac-afdc-4513-b24b-aa5f13a16123'
export const started = { EventStatus: 'Started', NotBefore: '' }

/** A forwarder reduced to its memory: each poll is diffed against what the ones before left. */
export class Watcher {
  state: RememberedState = emptyState
  at = start
  machine: Pick<Reading, 'bootId' | 'vmId' | 'vmName'> = { bootId: 'boot-1', vmId: 'vm-1', vmName: 'web_0' }
  /** Everything told so far. */
  readonly told: Transition[] = []

  /** One second after the poll before, unless `after` says otherwise. */
  poll(incarnation: unknown, events: unknown[], after = seconds): DiffResult {
    return this.accept({ DocumentIncarnation: incarnation, Events: events }, after)
  }

  accept(body: unknown, after = seconds): DiffResult {
    const parsed = parseDocument(body)
    if (!parsed.ok) throw new Error(parsed.problem)
    this.at += after
    const result = diff(this.state, { document: parsed.document, at: this.at, ...this.machine })
    this.state = result.state
    this.told.push(...result.transitions)
    return result
  }

  approve(): void {
    this.state = markApproved(this.state, key)
  }
}

/** A transition in one line: `scheduled`, `started!` when Scheduled was never observed, `completed/B`. */
export function inShort(transition: Transition): string {
  if (transition.kind === 'end') return `${transition.outcome}/${transition.evidence.rule}`
  return `${transition.status}${transition.scheduledObserved || transition.status !== 'started' ? '' : '!'}`
}

export function onlyState({ transitions }: DiffResult): StateTransition {
  const [transition] = transitions
  if (transitions.length !== 1 || transition?.kind !== 'state')
    throw new Error(`expected one state, got ${transitions.map(inShort).join()}`)
  return transition
}

export function onlyEnd({ transitions }: DiffResult): EndTransition {
  const [transition] = transitions
  if (transitions.length !== 1 || transition?.kind !== 'end') throw new Error(`expected one end, got ${transitions.map(inShort).join()}`)
  return transition
}
