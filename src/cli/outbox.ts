import { Option, type Command } from 'commander'
import { ForeshockError } from '../../sinks/error.ts'
import type { DeliveryState, ListedDelivery } from '../outbox/overview.ts'
import type { Store } from '../outbox/store.ts'
import { span } from '../span.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { number } from './number.ts'
import { table } from './table.ts'

interface Where {
  readonly config?: string
  readonly json?: boolean
}
interface Filter {
  readonly sink?: string
  readonly state?: DeliveryState
}

export const add: AddCommand = (program, run) => {
  const outbox = program.command('outbox').description('what waits and what died, per sink; works beside the running forwarder')
  const command = (name: string, description: string): Command =>
    outbox
      .command(name)
      .description(description)
      .option('--config <file>', 'configuration file, for state.path')
      .option('--file <path>', 'another state file, such as one that was set aside')
      .option('--json', 'machine-readable output')

  command('list', 'a summary per sink, then the deliveries, oldest first')
    .option('--sink <name>', 'only this sink')
    .addOption(states('pending', 'delivered', 'dead'))
    .option('--limit <n>', 'at most so many deliveries', number(1, 1_000_000, { whole: true }), 50)
    .action((options: Where & Filter & { limit: number; file?: string }) => run(() => withStore(options, (store) => list(store, options))))
  command('show', 'one event whole, and what became of it at each sink')
    .argument('<id>', 'CloudEvents id')
    .action((id: string, options: Where & { file?: string }) =>
      run(() => withStore(options, (store) => show(store, id, options.json === true))),
    )
  command('replay', 'tries dead letters again, and lifts the halt of a sink')
    .argument('[id]', 'CloudEvents id; all dead letters where it is missing')
    .option('--sink <name>', 'only this sink')
    .action((id: string | undefined, options: Where & Filter & { file?: string }) =>
      run(() =>
        withStore(options, (store) => {
          const { replayed, resumed } = store.replay({
            ...(id !== undefined && { id }),
            ...(options.sink !== undefined && { sink: options.sink }),
          })
          if (id !== undefined && replayed === 0)
            throw new ForeshockError('usage', `expected the id of a dead letter, got ${id}: see foreshock outbox list --state dead`)
          const text = `${replayed} dead letters wait again${resumed.length > 0 ? `; resumed: ${resumed.join(', ')}` : ''}`
          process.stdout.write(options.json === true ? `${JSON.stringify({ replayed, resumed })}\n` : `${text}\n`)
        }),
      ),
    )
  command('drop', 'removes deliveries for good: say which')
    .argument('[id]', 'CloudEvents id')
    .option('--sink <name>', 'only this sink')
    .addOption(states('pending', 'dead'))
    .option('--all', 'everything that waits or died')
    .action((id: string | undefined, options: Where & Filter & { all?: boolean; file?: string }) =>
      run(() => {
        const { sink, state } = options
        if (id === undefined && sink === undefined && state === undefined && options.all !== true) {
          throw new ForeshockError('usage', 'expected an id, --sink, --state or --all: what is dropped does not come back')
        }
        return withStore(options, (store) => {
          const dropped = store.drop({
            ...(id !== undefined && { id }),
            ...(sink !== undefined && { sink }),
            ...(state === 'pending' || state === 'dead' ? { state } : {}),
          })
          if (id !== undefined && dropped === 0)
            throw new ForeshockError('usage', `expected the id of an event that waits or died, got ${id}: see foreshock outbox list`)
          process.stdout.write(options.json === true ? `${JSON.stringify({ dropped })}\n` : `${dropped} deliveries dropped\n`)
        })
      }),
    )
}

const states = (...choices: DeliveryState[]) => new Option('--state <state>', 'only these').choices(choices)

async function withStore(options: Where & Filter & { readonly file?: string }, work: (store: Store) => void): Promise<number> {
  const { loadConfig } = await import('../config/load.ts')
  const { attachDatabase } = await import('../outbox/database.ts')
  const { createStore } = await import('../outbox/store.ts')
  const config = options.file === undefined ? await loadConfig(options.config, process.env) : undefined
  const database = attachDatabase(options.file ?? config?.state.path ?? '')
  try {
    const store = createStore(database, { now: Date.now })
    if (config !== undefined && options.sink !== undefined) refuseUnknown(options.sink, [...config.sinks, ...store.summarize()])
    work(store)
  } finally {
    database.close()
  }
  return exit.done
}

/** A misspelt name would look like a sink with nothing to do. */
function refuseUnknown(sink: string, known: readonly { readonly name: string }[]): void {
  const names = [...new Set(known.map(({ name }) => name))].toSorted()
  if (!names.includes(sink)) throw new ForeshockError('usage', `expected --sink to be one of ${names.join(', ')}, got ${sink}`)
}

function list(store: Store, { sink, state, limit, json }: Filter & { limit: number; json?: boolean }): void {
  const sinks = store.summarize().filter(({ name }) => sink === undefined || name === sink)
  // What was delivered is history: shown when it is asked for.
  const states: readonly DeliveryState[] = state === undefined ? ['pending', 'dead'] : [state]
  const shown = store.list({ limit, states, ...(sink !== undefined && { sink }) })
  if (json === true) {
    process.stdout.write(`${JSON.stringify({ sinks, deliveries: shown }, null, 2)}\n`)
    return
  }
  if (sinks.length === 0 && shown.length === 0) {
    process.stdout.write('nothing waits and nothing died\n')
    return
  }
  const summary = sinks.map((one) => [one.name, String(one.pending), age(one.oldestPendingAt), String(one.dead), one.haltedReason ?? ''])
  const tables = [
    ...(sinks.length > 0 ? [table(['sink', 'pending', 'oldest', 'dead', 'halted because'], summary)] : []),
    ...(shown.length > 0 ? [table(['sink', 'state', 'id', 'age', 'attempts', 'next', 'last failure'], shown.map(rowOf))] : []),
  ]
  process.stdout.write(`${tables.join('\n\n')}\n`)
}

const age = (at: number | null): string => (at === null ? '' : span(Date.now() - at))

function rowOf(delivery: ListedDelivery): string[] {
  const { sink, state, id, createdAt, attempts, nextAttemptAt, lastCode, lastDetail } = delivery
  const left = nextAttemptAt === null ? null : nextAttemptAt - Date.now()
  const next = state !== 'pending' ? '' : left === null ? 'after its predecessor' : left <= 0 ? 'now' : `in ${span(left)}`
  return [
    sink,
    state,
    id,
    span(Date.now() - createdAt),
    String(attempts),
    next,
    lastCode === null ? '' : `${lastCode}: ${lastDetail ?? ''}`,
  ]
}

function show(store: Store, id: string, json: boolean): void {
  const found = store.show(id)
  if (found.length === 0)
    throw new ForeshockError('usage', `expected the id of an event in the outbox, got ${id}: see foreshock outbox list`)
  if (json) {
    process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
    return
  }
  for (const { event, deliveries } of found) {
    const rows = deliveries.map(({ sink, state, attempts, settledAt, lastCode, lastDetail }) => [
      sink,
      state,
      String(attempts),
      settledAt === null ? '' : new Date(settledAt).toISOString(),
      lastCode === null ? '' : `${lastCode}: ${lastDetail ?? ''}`,
    ])
    process.stdout.write(`${JSON.stringify(event, null, 2)}\n\n${table(['sink', 'state', 'attempts', 'settled', 'last failure'], rows)}\n`)
  }
}
