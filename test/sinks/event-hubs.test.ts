import eventHubs from '../../sinks/event-hubs.ts'
import { describeSinkConformance } from '../support/sink-conformance.ts'
import { brokerHarness } from './azure/broker-harness.ts'

describeSinkConformance(brokerHarness(eventHubs, 'hub'))
describeSinkConformance(brokerHarness(eventHubs, 'hub', { mode: 'binary' }))
