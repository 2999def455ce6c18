/** Every way in which foreshock itself fails on purpose. What a code means for the exit status stands in `src/cli/exit.ts`. */
export type ErrorCode =
  /** A configuration, option or argument is not as it must be. */
  | 'config_invalid'
  /** The command line asks for something that does not exist. */
  | 'usage'
  /** Another process holds the state file. */
  | 'state_locked'
  /** The state file can neither be used nor set aside (permissions, disk). */
  | 'state_unusable'
  /** A needed service does not answer: IMDS, the admin endpoint, a port that is taken. */
  | 'unreachable'
  /** A sink cannot be opened with these options on this machine. */
  | 'sink_unusable'
  /** An event breaks the rules of CloudEvents or our own; a fault of the program, never of its input. */
  | 'event_invalid'
  /** A scenario file is not as it must be. */
  | 'scenario_invalid'

/**
 * The one error class. `message` is for people: what was expected, what was got, what to do. It never carries a secret.
 * Not for what a sink met while delivering: that is a `DeliveryOutcome`.
 */
export class ForeshockError extends Error {
  override readonly name = 'ForeshockError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
