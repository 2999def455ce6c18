import type { Json } from '../../sinks/cloud-event.ts'
import { canonicalJson } from './canonical-json.ts'
import { sha256 } from './digest.ts'
import type { Anomaly } from './model.ts'

/** More than one document can bring, so that nothing is told twice while it stands there. */
const maxTold = 4096

/** An anomaly with the content that makes it distinct. */
export interface Oddity extends Anomaly {
  readonly content: Json
}

/** Those that were not told yet, and what is remembered as told from now on. */
export function tellOnce(told: readonly string[], oddities: readonly Oddity[]): { anomalies: Anomaly[]; told: string[] } {
  const remembered = new Set(told)
  const anomalies: Anomaly[] = []
  for (const { content, ...anomaly } of oddities) {
    const digest = sha256(canonicalJson([anomaly.kind, anomaly.key, content])).slice(0, 16)
    // Taken out and put in again, it is the newest: what still stands in the document is never the one to be forgotten.
    if (!remembered.delete(digest)) anomalies.push(anomaly)
    remembered.add(digest)
  }
  return { anomalies, told: [...remembered].slice(-maxTold) }
}
