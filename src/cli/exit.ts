import type { ErrorCode } from '../../sinks/error.ts'

/** Exit statuses of every command; the numbers above 64 are those of sysexits.h. */
export const exit = { done: 0, failed: 1, usage: 2, unreachable: 69, tryAgain: 75 } as const

/** What each error means for whoever called the program. */
export const exitOf: Readonly<Record<ErrorCode, number>> = {
  config_invalid: exit.usage,
  usage: exit.usage,
  scenario_invalid: exit.usage,
  state_locked: exit.tryAgain,
  state_unusable: exit.failed,
  unreachable: exit.unreachable,
  sink_unusable: exit.failed,
  event_invalid: exit.failed,
}
