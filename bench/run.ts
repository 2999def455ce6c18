/** Everything that is measured, in one run and against something bare beside it: absolute numbers vary with the machine, ratios less so. */
import { amqpBacklog, amqpDelivery, amqpLatency, amqpMemory } from './amqp.ts'
import { approval } from './approval.ts'
import { footprint, start } from './footprint.ts'
import { latency } from './latency.ts'
import { print } from './numbers.ts'

print([
  ...(await latency()),
  ...(await amqpLatency()),
  ...(await amqpDelivery()),
  ...(await amqpBacklog()),
  ...(await approval()),
  ...(await footprint()),
  ...(await amqpMemory()),
  await start(),
])
