import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** What the metrics read at the moment of a scrape, so that nothing has to be kept up to date between two. */
export interface MetricsSource {
  /** Milliseconds since the epoch of the last good poll; null before the first. */
  lastGoodPollAt(): number | null
  incarnation(): number | null
  liveEvents(): readonly { readonly type: string; readonly status: string }[]
  sinks(): readonly {
    readonly name: string
    readonly pending: number
    readonly dead: number
    readonly oldestPendingAt: number | null
    readonly healthy: boolean
  }[]
  now(): number
}

const knownTypes = new Set(['Freeze', 'Reboot', 'Redeploy', 'Preempt', 'Terminate'])
const knownStatuses = new Set(['scheduled', 'started', 'completed', 'cancelled', 'vanished'])
/** Labels stay bounded whatever IMDS sends. */
const typeLabel = (type: string): string => (knownTypes.has(type) ? type : 'other')
const statusLabel = (status: string): string => (knownStatuses.has(status.toLowerCase()) ? status.toLowerCase() : 'other')

export interface Metrics {
  readonly registry: Registry
  poll(result: string, gapSeconds: number | null): void
  transition(type: string, status: string, leadSeconds: number | null): void
  anomaly(kind: string): void
  delivery(sink: string, outcome: 'delivered' | 'retry' | 'rejected', latencySeconds: number | null): void
  pruned(sink: string, state: string, count: number): void
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
  const lead = new Histogram({
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
      const at = source.lastGoodPollAt()
      if (at !== null) this.set(at / 1000)
    },
  })
  new Gauge({
    name: 'foreshock_document_incarnation',
    help: 'DocumentIncarnation of the last accepted document; absent where it is no number.',
    registers,
    collect() {
      this.reset()
      const incarnation = source.incarnation()
      if (incarnation !== null) this.set(incarnation)
    },
  })
  new Gauge({
    name: 'foreshock_events_live',
    help: 'Events in the last accepted document.',
    labelNames: ['type', 'status'],
    registers,
    collect() {
      this.reset()
      for (const event of source.liveEvents()) this.inc({ type: typeLabel(event.type), status: statusLabel(event.status) })
    },
  })
  const perSink = (name: string, help: string, value: (sink: ReturnType<MetricsSource['sinks']>[number]) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['sink'],
      registers,
      collect() {
        this.reset()
        for (const sink of source.sinks()) this.set({ sink: sink.name }, value(sink))
      },
    })
  }
  perSink('foreshock_outbox_depth', 'Events that wait for this sink.', (sink) => sink.pending)
  perSink('foreshock_outbox_oldest_age_seconds', 'Age of the oldest event that waits.', (sink) =>
    sink.oldestPendingAt === null ? 0 : Math.max(0, source.now() - sink.oldestPendingAt) / 1000,
  )
  perSink('foreshock_dead_letters', 'Events that this sink refused for good.', (sink) => sink.dead)
  perSink('foreshock_sink_healthy', '1 while deliveries succeed, 0 while they fail.', (sink) => (sink.healthy ? 1 : 0))

  return {
    registry,
    poll(result, gapSeconds) {
      polls.inc({ result })
      if (gapSeconds !== null) gap.observe(gapSeconds)
    },
    transition(type, status, leadSeconds) {
      transitions.inc({ type: typeLabel(type), status: statusLabel(status) })
      if (leadSeconds !== null) lead.observe({ type: typeLabel(type) }, Math.max(0, leadSeconds))
    },
    anomaly: (kind) => anomalies.inc({ kind }),
    delivery(sink, outcome, latencySeconds) {
      deliveries.inc({ sink, outcome })
      if (latencySeconds !== null) latency.observe({ sink }, latencySeconds)
    },
    pruned: (sink, state, count) => pruned.inc({ sink, state }, count),
  }
}
