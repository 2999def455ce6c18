import { vi } from 'vitest'
import type { SinkDefinition } from '../../../sinks/contract.ts'
import type { Broker } from '../../../src/simulator/broker/broker.ts'
import type { SinkHarness } from '../../support/sink-conformance.ts'
import { arrivedAt, optionsFor, startNamespace } from './namespace.ts'

/** The conformance suite against the local broker: every way to fail that it knows. */
export function brokerHarness(
  definition: SinkDefinition,
  entity: 'hub' | 'queue' | 'topic' | 'sessions',
  more: object = {},
): SinkHarness<Broker> {
  const busy = {
    condition: 'com.microsoft:server-busy',
    description: 'The request was terminated because the entity is being throttled. Please wait 2 seconds and try again.',
  }
  return {
    definition,
    variant: [entity, ...Object.values(more)].join(', '),
    start: () => startNamespace(),
    stop: async (broker) => {
      await broker.faults.clear()
      await broker.close()
    },
    options: (broker) => optionsFor(broker, entity, more),
    arrived: (broker) => arrivedAt(broker, entity),
    down: { cause: (broker) => broker.stop(), heal: (broker) => broker.start() },
    throttled: {
      cause: (broker) => void broker.faults.rejectSends(busy, { entity }),
      heal: (broker) => broker.faults.clear(),
    },
    refused: {
      refusal: 'refused',
      cause: (broker) => void broker.faults.disableEntity(entity),
      heal: (broker) => broker.faults.clear(),
    },
    hanging: {
      cause: (broker) => {
        ignored = broker.faults.ignoreSends({ entity })
      },
      reached: () =>
        vi.waitFor(
          () => {
            if ((ignored?.hits ?? 0) === 0) throw new Error('no send has arrived yet')
          },
          { timeout: 5_000, interval: 10 },
        ),
      heal: (broker) => broker.faults.clear(),
    },
    checkFails: (broker) => void broker.faults.disableEntity(entity),
  }
}

let ignored: { readonly hits: number } | undefined
