import type { z } from 'zod'

/** One thing that is wrong in the configuration, and where. */
export interface Mistake {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/** `sinks[1].url`; the whole file is `(top level)`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : `${text === '' ? '' : '.'}${String(part)}`
  return text === '' ? '(top level)' : text
}

/** Keys whose values are never shown, whatever is wrong with them. */
const secretive = /secret|token|password|connectionstring|key|headers|url|auth|env/i

/**
 * What zod found, as mistakes: an unknown key is told at its own path, a union by the alternative that came closest, and the value that came
 * is shown as the file has it (before the environment was filled in) where it cannot be a secret.
 */
export function mistakesOf(error: z.ZodError, file: unknown, under: readonly PropertyKey[] = []): Mistake[] {
  return error.issues.flatMap((issue) => mistakesOfIssue(issue, file, under))
}

function mistakesOfIssue(issue: z.core.$ZodIssue, file: unknown, under: readonly PropertyKey[]): Mistake[] {
  const path = [...under, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key: remove it, or check its spelling' }))
  }
  if (issue.code === 'invalid_union' && issue.message === 'Invalid input') {
    const closest = issue.errors.toSorted((a, b) => depth(b) - depth(a))[0]
    if (closest !== undefined && depth(closest) > 0) return closest.flatMap((inner) => mistakesOfIssue(inner, file, path))
    const expected = issue.errors.flatMap((alternative) =>
      alternative.map((inner) => inner.message.replace(/^Invalid (input|option): /, '')),
    )
    return [{ path, message: withGot([...new Set(expected)].join(', or '), file, path) }]
  }
  return [{ path, message: withGot(issue.message.replace(/^(Invalid (input|option)|Too (small|big)): /, ''), file, path) }]
}

const depth = (alternative: readonly z.core.$ZodIssue[]): number => Math.max(0, ...alternative.map((issue) => issue.path.length))

function withGot(message: string, file: unknown, path: readonly PropertyKey[]): string {
  let value = file
  for (const part of path) value = typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined
  if (value === undefined)
    return message.includes('received undefined') ? 'missing: ' + message.replace(/, received undefined/, '') : message
  if (typeof value === 'object' || path.some((part) => secretive.test(String(part)))) return message
  return `${message.replace(/, received \w+$/, '')}, got ${JSON.stringify(value)}`
}
