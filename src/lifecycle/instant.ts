/** ISO 8601 in UTC with milliseconds. `at` is in milliseconds since the epoch. */
export const toIso = (at: number): string => new Date(at).toISOString()

/** Milliseconds since the epoch of an ISO 8601 text; NaN where it is none. */
export const fromIso = (text: string): number => Date.parse(text)
