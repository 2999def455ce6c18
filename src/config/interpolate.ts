import type { Mistake } from './mistake.ts'

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/**
 * Replaces `${NAME}` and `${NAME:-default}` in every string of a parsed configuration. As in a shell, the default stands in for an unset
 * and for an empty variable. A variable that is unset and has no default is a mistake, not an empty text.
 */
export function interpolate(
  value: unknown,
  env: NodeJS.ProcessEnv,
  path: readonly PropertyKey[] = [],
): { value: unknown; mistakes: Mistake[] } {
  if (typeof value === 'string') {
    const mistakes: Mistake[] = []
    const text = value.replace(reference, (_, name: string, fallback: string | undefined) => {
      const set = env[name]
      if (set !== undefined && (set !== '' || fallback === undefined)) return set
      if (fallback !== undefined) return fallback
      mistakes.push({ path, message: `the environment variable ${name} is not set: set it, or give a default as \${${name}:-…}` })
      return ''
    })
    return { value: text, mistakes }
  }
  if (typeof value !== 'object' || value === null) return { value, mistakes: [] }
  const parts = Object.entries(value).map(([key, part]) => {
    const at = Array.isArray(value) ? Number(key) : key
    return [key, interpolate(part, env, [...path, at])] as const
  })
  const mistakes = parts.flatMap(([, part]) => part.mistakes)
  if (Array.isArray(value)) return { value: parts.map(([, part]) => part.value), mistakes }
  return { value: Object.fromEntries(parts.map(([key, part]) => [key, part.value])), mistakes }
}
