import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { customSink } from '../../src/registry.ts'
import { arrivedFromJson } from '../support/arrived.ts'
import { describeSinkConformance } from '../support/sink-conformance.ts'

const found = await customSink('./minimal-sink.mjs', join(import.meta.dirname, '../fixtures/custom-sink'))
if ('problem' in found) throw new TypeError(found.problem)

describeSinkConformance<string>({
  definition: found.definition,
  start: () => mkdtemp(join(tmpdir(), 'foreshock-spool-')),
  stop: (directory) => rm(directory, { recursive: true, force: true }),
  options: (directory) => ({ directory }),
  async arrived(directory) {
    const names = await readdir(directory)
    return Promise.all(names.map(async (name) => arrivedFromJson(JSON.parse(await readFile(join(directory, name), 'utf8')))))
  },
  down: { lacks: 'a directory is either there or not' },
  throttled: { lacks: 'a directory has no limits' },
  refused: {
    cause: (directory) => rename(directory, `${directory}-away`),
    heal: (directory) => rename(`${directory}-away`, directory),
    refusal: 'refused',
  },
  hanging: { lacks: 'a local file system answers' },
  checkFails: (directory) => rm(directory, { recursive: true }),
})
