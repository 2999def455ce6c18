import { InvalidArgumentError } from 'commander'

/** A parser for options that are numbers within bounds, both included. Its error says what was expected and what came. */
export function number(least: number, most: number, { whole = false } = {}): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() === '' || !(value >= least && value <= most) || (whole && !Number.isInteger(value))) {
      throw new InvalidArgumentError(
        `expected ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, got ${JSON.stringify(text)}`,
      )
    }
    return value
  }
}
