/** Everything that is measured, in one run and against something bare beside it: absolute numbers vary with the machine, ratios less so. */
import { approval } from './approval.ts'
import { footprint, start } from './footprint.ts'
import { latency } from './latency.ts'
import { print } from './numbers.ts'

print([...(await latency()), ...(await approval()), ...(await footprint()), await start()])
