import { readFile } from 'node:fs/promises'
import { z } from 'zod'

/**
 * A GUID that the kernel makes anew at each boot; null where the platform has none, or hides it (systemd's `ProcSubset=pid`).
 *
 * Source: https://www.kernel.org/doc/html/latest/admin-guide/sysctl/kernel.html#random
 */
export async function readBootId(path = '/proc/sys/kernel/random/boot_id'): Promise<string | null> {
  try {
    return z
      .guid()
      .nullable()
      .catch(null)
      .parse((await readFile(path, 'utf8')).trim())
  } catch (error) {
    if (error instanceof Error && 'code' in error && absent.has(error.code)) return null
    throw error
  }
}

const absent = new Set<unknown>(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'])
