import type { JsonObject } from '../../sinks/cloud-event.ts'
import { eventBytes, maxEventBytes } from './build.ts'

/** The attributes take far less: the longest are the source and the subject that repeats it. */
const maxDataBytes = maxEventBytes - 16 * 1024

/** The data as it is where it fits into an event, else after as few of the cuts, in their order, as make it fit. */
export function fitData<Data extends JsonObject>(data: Data, cuts: readonly ((data: Data) => Data)[]): Data {
  let fitting = data
  for (const cut of cuts) {
    if (eventBytes(fitting) <= maxDataBytes) break
    fitting = cut(fitting)
  }
  return fitting
}
