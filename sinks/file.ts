import { constants } from 'node:fs'
import { access, open, stat, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { defineSink, delivered, type CheckResult, type DeliveryOutcome, type EventFormat, type Sink } from './contract.ts'
import { ForeshockError } from './error.ts'
import { untilAborted } from './interrupted.ts'

const options = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe(
      'File that one JSON line per event is appended to; created with mode 0640 where missing, in a directory that exists. May be rotated.',
    ),
})

interface Waiting {
  readonly line: string
  resolve(outcome: DeliveryOutcome): void
  reject(error: unknown): void
}

const newline = 0x0a

/** Reading is needed to see whether the last line was finished. */
const appendFlags = constants.O_RDWR | constants.O_APPEND

/** How often a batch is written anew when the file is rotated under it, before it waits for the next attempt. */
const rotationsPerBatch = 3

const createDirectory = 'create the directory, or change `path`'
const giveRights = 'let the user that runs the program read and write the file, and its directory where the file is to be created'
const nameFile = 'set `path` to a regular file'
const freeSpace = 'free space on that file system; nothing is lost meanwhile'
const closeFiles = 'raise the limit of open files; nothing is lost meanwhile'
const lookAtDisk = 'look at the health of that file system; nothing is lost meanwhile'

/** What the kernel may answer, whether it can pass by itself, and what to do. */
const failures: Readonly<Record<string, readonly [because: 'transient' | 'refused', cure: string]>> = {
  EACCES: ['refused', giveRights],
  EPERM: ['refused', giveRights],
  EROFS: ['refused', 'mount the file system writable, or change `path`'],
  ENOENT: ['refused', createDirectory],
  ENOTDIR: ['refused', createDirectory],
  ENAMETOOLONG: ['refused', nameFile],
  EISDIR: ['refused', nameFile],
  ELOOP: ['refused', nameFile],
  EFBIG: ['refused', 'rotate the file, or raise the limit of file sizes'],
  ENOSPC: ['transient', freeSpace],
  EDQUOT: ['transient', freeSpace],
  EMFILE: ['transient', closeFiles],
  ENFILE: ['transient', closeFiles],
  EBUSY: ['transient', lookAtDisk],
  EIO: ['transient', lookAtDisk],
  ESTALE: ['transient', lookAtDisk],
  ETIMEDOUT: ['transient', lookAtDisk],
}

export default defineSink({
  type: 'file',
  summary: 'One JSON line per event, appended to a file and fsynced',
  options,
  formats: ['cloudevents', 'azure-resource-log', 'ecs'],
  open: async ({ path }, { format }) => fileSink(path, format),
})

/**
 * Deliveries that come while a batch is being written form the next one: one write and one fsync for all of them.
 *
 * `delivered` means: the line is on disk, in the file that bears the name. A file that was rotated away or deleted is noticed before the write
 * and again after the fsync; then the batch is written to the new one too. After any failure the file is closed and opened anew, because the
 * kernel reports a lost page only once.
 */
function fileSink(path: string, format: EventFormat): Sink {
  let file: FileHandle | undefined
  let waiting: Waiting[] = []
  let writer: Promise<void> | undefined
  let closed = false

  const writeBatch = async (text: string): Promise<DeliveryOutcome> => {
    try {
      for (let attempt = 0; attempt < rotationsPerBatch; attempt += 1) {
        if (file !== undefined && !(await bearsName(file, path))) {
          await file.close()
          file = undefined
        }
        file ??= await openForAppend(path)
        await file.appendFile((await endsInsideLine(file)) ? '\n' + text : text)
        await file.sync()
        if (await bearsName(file, path)) return delivered
      }
      return { status: 'retry', because: 'transient', code: 'file_rotated', detail: `${path} was replaced again and again while written` }
    } catch (error) {
      const failed = file
      file = undefined
      await failed?.close()
      const { because, code, detail } = failureOf(error, path)
      return { status: 'retry', because, code, detail }
    }
  }

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      try {
        const outcome = await writeBatch(batch.map((entry) => entry.line).join(''))
        for (const entry of batch) entry.resolve(outcome)
      } catch (error) {
        for (const entry of batch) entry.reject(error)
      }
    }
    writer = undefined
  }

  return {
    async deliver(event, { signal }) {
      if (closed) return { status: 'retry', because: 'transient', code: 'closed', detail: 'the sink is closed' }
      const written = Promise.withResolvers<DeliveryOutcome>()
      const entry: Waiting = { line: format.write(event) + '\n', resolve: written.resolve, reject: written.reject }
      const outcome = await untilAborted(signal, () => {
        waiting.push(entry)
        writer ??= writeAll()
        return written.promise
      })
      // Behind a write that hangs, what was given up must not pile up.
      if (signal.aborted) waiting = waiting.filter((other) => other !== entry)
      return outcome
    },
    check: () => checkFile(path),
    async close() {
      closed = true
      await writer
      const last = file
      file = undefined
      await last?.close()
    },
  }
}

async function openForAppend(path: string): Promise<FileHandle> {
  if (await isThere(path)) return open(path, appendFlags)
  const created = await open(path, appendFlags | constants.O_CREAT, 0o640)
  await syncDirectory(dirname(path))
  return created
}

/** Whether the path names a regular file; a device, pipe or directory throws, for fsync means nothing there. */
async function isThere(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isFile()) return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
  throw new ForeshockError('sink_unusable', `expected a regular file, got something else at ${path}`)
}

/** Makes the new name itself survive a crash, where the directory may be opened at all. */
async function syncDirectory(path: string): Promise<void> {
  let directory: FileHandle
  try {
    directory = await open(path, constants.O_RDONLY)
  } catch (error) {
    if (['EACCES', 'EPERM', 'EISDIR'].includes(codeOf(error) ?? '')) return
    throw error
  }
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** Whether the open file is still the one that the path names. */
async function bearsName(file: FileHandle, path: string): Promise<boolean> {
  const mine = await file.stat({ bigint: true })
  try {
    const named = await stat(path, { bigint: true })
    return named.ino === mine.ino && named.dev === mine.dev
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

/** A crash or a full disk may have cut the last line short; a newline keeps the next event from being glued to it. */
async function endsInsideLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return bytesRead === 1 && buffer[0] !== newline
}

async function checkFile(path: string): Promise<CheckResult> {
  try {
    if (!(await isThere(path))) {
      await access(dirname(path), constants.W_OK | constants.X_OK)
      return { ok: true, detail: `${path} will be created` }
    }
    const file = await open(path, appendFlags)
    await file.close()
    return { ok: true, detail: `${path} can be appended to` }
  } catch (error) {
    const { detail, cure } = failureOf(error, path)
    return { ok: false, detail, cure }
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Throws on what the table does not know. */
function failureOf(error: unknown, path: string): { because: 'transient' | 'refused'; code: string; detail: string; cure: string } {
  if (error instanceof ForeshockError) return { because: 'refused', code: 'not_a_file', detail: error.message, cure: nameFile }
  const code = codeOf(error) ?? ''
  const known = failures[code]
  if (known === undefined) throw error
  const [because, cure] = known
  return { because, code: code.toLowerCase(), detail: `${path} cannot be written: ${code}; ${cure}`, cure }
}
