import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { incarnationNumber } from '../lifecycle/incarnation.ts'
import type { RememberedState, Transition } from '../lifecycle/model.ts'
import type { SinkStatus } from '../status.ts'

/** What the metrics read at the moment of a scrape, so that nothing has to be kept up to date between two. */
export interface MetricsSource {
  remembered(): Pick<RememberedState, 'lastGoodPollAt' | 'incarnation' | 'live'>
  sinks(): readonly SinkStatus[]
  now(): number
}

const knownTypes = new Set(['Freeze', 'Reboot', 'Redeploy', 'Preempt', 'Terminate'])
const knownStatuses = new Set(['scheduled', 'started', 'completed', 'cancelled', 'vanished'])
/** Labels stay bounded whatever IMDS sends. */
const typeLabel = (type: string): string => (knownTypes.has(type) ? type : 'other')
const statusLabel = (status: string): string => (knownStatuses.has(status.toLowerCase()) ? status.toLowerCase() : 'other')

const outcomes = ['delivered', 'retry', 'rejected', 'expired'] as const

export interface Metrics {
  readonly registry: Registry
  /** `at` in milliseconds since the epoch. */
  poll(result: string, at: number): void
  transition(transition: Transition): void
  anomaly(kind: string): void
  /** `expired`: a dead letter because its time ran out. */
  delivery(sink: string, outcome: (typeof outcomes)[number], latencySeconds: number | null): void
  pruned(sink: string, state: string, count: number): void
  approval(outcome: 'relayed' | 'refused' | 'failed', code: string): void
}

/** All metrics of the forwarder in a registry of their own; names `foreshock_…`, base units, labels bounded. */
export function createMetrics(version: string, source: MetricsSource): Metrics {
  const registry = new Registry()
  const registers = [registry]

  new Gauge({
    name: 'foreshock_build_info',
    help: 'Version of the running program; always 1.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.versions.node }, 1)
  const polls = new Counter({ name: 'foreshock_polls_total', help: 'Polls of IMDS by result.', labelNames: ['result'], registers })
  const gap = new Histogram({
    name: 'foreshock_poll_gap_seconds',
    help: 'Seconds between two good polls.',
    buckets: [0.25, 0.5, 1, 1.5, 2, 5, 10, 30, 60, 300, 3600],
    registers,
  })
  const transitions = new Counter({
    name: 'foreshock_transitions_total',
    help: 'Transitions of scheduled events, whoever publishes them.',
    labelNames: ['type', 'status'],
    registers,
  })
  const leads = new Histogram({
    name: 'foreshock_lead_time_seconds',
    help: 'Seconds from the first sight of a scheduled event to its NotBefore.',
    labelNames: ['type'],
    buckets: [0, 10, 30, 60, 300, 600, 900, 3600, 86_400],
    registers,
  })
  const anomalies = new Counter({
    name: 'foreshock_anomalies_total',
    help: 'Departures from the documented life cycle.',
    labelNames: ['kind'],
    registers,
  })
  const deliveries = new Counter({
    name: 'foreshock_deliveries_total',
    help: 'Delivery attempts by outcome.',
    labelNames: ['sink', 'outcome'],
    registers,
  })
  const latency = new Histogram({
    name: 'foreshock_delivery_latency_seconds',
    help: 'Seconds from detection to delivered.',
    labelNames: ['sink'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 300, 3600, 86_400],
    registers,
  })
  const approvals = new Counter({
    name: 'foreshock_approvals_total',
    help: 'Approvals by outcome and reason code; `ok` is relayed.',
    labelNames: ['outcome', 'reason'],
    registers,
  })
  const pruned = new Counter({
    name: 'foreshock_outbox_pruned_total',
    help: 'Deliveries removed from the outbox at the end of their time.',
    labelNames: ['sink', 'state'],
    registers,
  })

  new Gauge({
    name: 'foreshock_last_good_poll_timestamp_seconds',
    help: 'When IMDS last answered well; absent before.',
    registers,
    collect() {
      const at = source.remembered().lastGoodPollAt
      if (at === null) this.remove()
      else this.set(at / 1000)
    },
  })
  new Gauge({
    name: 'foreshock_document_incarnation',
    help: 'DocumentIncarnation of the last accepted document; absent where it is no number.',
    registers,
    collect() {
      const incarnation = incarnationNumber(source.remembered().incarnation)
      // 0 is an incarnation: unknown is absent.
      if (incarnation === null) this.remove()
      else this.set(incarnation)
    },
  })
  new Gauge({
    name: 'foreshock_events_live',
    help: 'Events in the last accepted document.',
    labelNames: ['type', 'status'],
    registers,
    collect() {
      this.reset()
      for (const { event } of Object.values(source.remembered().live)) {
        this.inc({ type: typeLabel(event.eventType), status: statusLabel(event.eventStatus) })
      }
    },
  })
  const perSink = (name: string, help: string) => new Gauge({ name, help, labelNames: ['sink'], registers })
  new Gauge({
    name: 'foreshock_outbox_depth',
    help: 'Events that wait for this sink.',
    labelNames: ['sink'],
    registers,
    // The outbox is asked once a scrape, for the gauges below as well: they are read after this one.
    collect() {
      for (const { name: sink, ...status } of source.sinks()) {
        this.set({ sink }, status.pending)
        dead.set({ sink }, status.dead)
        healthy.set({ sink }, status.health.state === 'ok' ? 1 : 0)
        oldest.set({ sink }, status.oldestPendingAt === null ? 0 : Math.max(0, source.now() - status.oldestPendingAt) / 1000)
      }
    },
  })
  const oldest = perSink('foreshock_outbox_oldest_age_seconds', 'Age of the oldest event that waits.')
  const dead = perSink('foreshock_dead_letters', 'Events that this sink refused for good.')
  const healthy = perSink('foreshock_sink_healthy', '1 while deliveries succeed, 0 while they fail.')
  // From the start, so that the first failure of a sink is an increase like any other.
  for (const { name: sink } of source.sinks()) for (const outcome of outcomes) deliveries.inc({ sink, outcome }, 0)

  let lastGoodAt: number | null = null
  return {
    registry,
    poll(result, at) {
      polls.inc({ result })
      if (result !== 'ok') return
      if (lastGoodAt !== null) gap.observe(Math.max(0, at - lastGoodAt) / 1000)
      lastGoodAt = at
    },
    transition(transition) {
      const type = typeLabel(transition.event.eventType)
      transitions.inc({ type, status: statusLabel(transition.kind === 'end' ? transition.outcome : transition.status) })
      const lead = leadSeconds(transition)
      if (lead !== null) leads.observe({ type }, lead)
    },
    anomaly: (kind) => anomalies.inc({ kind }),
    delivery(sink, outcome, latencySeconds) {
      deliveries.inc({ sink, outcome })
      if (latencySeconds !== null) latency.observe({ sink }, latencySeconds)
    },
    pruned: (sink, state, count) => pruned.inc({ sink, state }, count),
    approval: (outcome, code) => approvals.inc({ outcome, reason: code }),
  }
}

/** How long before NotBefore an event was first seen, null where it was announced before or never. */
function leadSeconds(transition: Transition): number | null {
  if (transition.kind === 'end' || transition.status !== 'scheduled' || transition.changes.length > 0 || transition.notBefore === null)
    return null
  return Math.max(0, Date.parse(transition.notBefore) - transition.at) / 1000
}
