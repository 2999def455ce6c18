/** Words of our own, which say what only a verdict can say. */
const verdicts = new Set(['ended', 'vanished'])
/** Longest status in a CloudEvents type and id. */
const longest = 20

/** `scheduled`, `started`, or an unknown status in a form that can stand in a type: `[a-z0-9]`, at most 20 characters. */
export function statusName(eventStatus: string): string {
  const name = eventStatus
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .slice(0, longest)
  return name === '' || verdicts.has(name) ? 'unknown' : name
}

/**
 * What a status says about the end, null where it says none. IMDS itself never sends one (a finished event just disappears); the same
 * events relayed by Event Grid and by mocks do carry `Completed`.
 */
export function terminalOutcome(eventStatus: string): 'completed' | 'cancelled' | null {
  switch (statusName(eventStatus)) {
    case 'completed':
      return 'completed'
    case 'canceled':
    case 'cancelled':
      return 'cancelled'
    default:
      return null
  }
}
