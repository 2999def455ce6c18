import type { Continuity } from './continuity.ts'
import type { EventsDocument, RememberedState, Transition } from './model.ts'
import type { Oddity } from './told-anomalies.ts'

/** What is odd about the document by itself: entries that are broken, in part or in whole, and ids that stand there twice. */
export function oddEntries(document: EventsDocument, duplicates: ReadonlyMap<string, string>): Oddity[] {
  const oddities: Oddity[] = document.broken.map(({ key, problem, raw }) => ({ kind: 'broken-entry', key, detail: problem, content: raw }))
  for (const { eventId, raw, unreadable = [] } of document.events) {
    if (raw === undefined) continue
    const detail = `${eventId}: ${unreadable.length === 0 ? 'a description' : unreadable.join(', ')} could not be read`
    oddities.push({ kind: 'broken-entry', key: eventId.toLowerCase(), detail, content: raw })
  }
  for (const [key, content] of duplicates) {
    oddities.push({ kind: 'duplicate-id', key, detail: `${key} stands more than once in the document: merged`, content })
  }
  return oddities
}

/** What is odd about its incarnation, compared to the one before. */
export function oddIncarnation(state: RememberedState, document: EventsDocument, continuity: Continuity): Oddity[] {
  const { incarnation: now } = document
  const step = `from ${state.incarnation} to ${now}`
  if (continuity.epoch > state.epoch) {
    const content = [continuity.epoch, state.incarnation, now]
    return [{ kind: 'incarnation-restarted', key: null, detail: `the incarnation fell ${step} and starts anew`, content }]
  }
  if (!continuity.stale) return []
  const detail = `the incarnation fell ${step}: removals and changes wait for the next reading`
  return [{ kind: 'lower-incarnation', key: null, detail, content: [state.incarnation, now] }]
}

/** What is odd about a transition. */
export function oddTransition(transition: Transition): Oddity[] {
  const { anomaly, key, generation, incarnation } = transition
  if (anomaly === undefined) return []
  const detail = {
    'started-to-scheduled': `${key} went from Started back to Scheduled: it will not be approved automatically`,
    'same-incarnation': `${key} changed while the incarnation stayed ${incarnation}`,
  }[anomaly]
  const content = transition.kind === 'end' ? 'ended' : [transition.status, transition.digest16, transition.repeat]
  return [{ kind: anomaly, key, detail, content: [generation, incarnation, content] }]
}
