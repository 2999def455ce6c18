import { createRequire, isBuiltin, registerHooks } from 'node:module'
import { join } from 'node:path'

/**
 * The file that `import` of a package, or of a part of one, gives to a module in `folder`; undefined where no such package is installed.
 * Throws what Node throws where there is one, but not as it must be.
 *
 * `import.meta.resolve` looks from this very file alone, and `require.resolve` passes over `exports` that are for `import` only; with its
 * condition exchanged it follows them.
 */
export function resolveForImport(specifier: string, folder: string): string | undefined {
  if (isBuiltin(specifier)) return undefined
  const hooks = registerHooks({
    resolve: (name, context, next) =>
      next(name, { ...context, conditions: context.conditions.map((condition) => (condition === 'require' ? 'import' : condition)) }),
  })
  try {
    return createRequire(join(folder, 'sink.cjs')).resolve(specifier)
  } catch (error) {
    // With a path it is a package that is there, but lacks the file that it names.
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND' && !('path' in error)) return undefined
    throw error
  } finally {
    hooks.deregister()
  }
}
