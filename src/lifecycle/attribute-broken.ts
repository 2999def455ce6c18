import type { BrokenEntry, LiveEvent } from './model.ts'

/** What the broken entries of a document mean for the known events that are absent from it. */
export interface Attribution {
  /** Keys of those that a broken entry stands for: by its id, or without one by type and resources. They keep their state. */
  readonly standing: ReadonlySet<string>
  /** An entry stands for none of them that can be told: it may be any, so nothing definite can be said of an absence. */
  readonly unattributed: boolean
}

export function attributeBroken(
  broken: readonly BrokenEntry[],
  absent: readonly (readonly [key: string, known: LiveEvent])[],
): Attribution {
  const alike = Map.groupBy(absent, ([, { event }]) => likeness(event.eventType, event.resources))
  const standing = new Set<string>()
  let unattributed = false
  for (const { key, eventType, resources } of broken) {
    if (key !== null) {
      standing.add(key)
      continue
    }
    const matches = alike.get(likeness(eventType, resources)) ?? []
    for (const [match] of matches) standing.add(match)
    if (matches.length === 0) unattributed = true
  }
  return { standing, unattributed }
}

const likeness = (eventType: string | null, resources: readonly string[]): string => JSON.stringify([eventType, resources])
