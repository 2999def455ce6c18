/** Milliseconds for the first request of all: Scheduled Events are switched on by it, which may take two minutes. */
export const firstTimeoutMs = 130_000

/** Milliseconds for every other one. */
export const usualTimeoutMs = 10_000
