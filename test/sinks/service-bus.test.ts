import serviceBus from '../../sinks/service-bus.ts'
import { describeSinkConformance } from '../support/sink-conformance.ts'
import { brokerHarness } from './azure/broker-harness.ts'

describeSinkConformance(brokerHarness(serviceBus, 'queue'))
describeSinkConformance(brokerHarness(serviceBus, 'topic', { mode: 'binary' }))
