import type { Broker } from './broker.ts'

/** What can be typed at a running broker, with what it does: the faults of `Broker.faults`, by hand. */
export const faultCommands: readonly (readonly [command: string, meaning: string])[] = [
  ['drop', 'breaks every connection'],
  ['detach [ENTITY]', 'detaches the links of an entity, or all'],
  ['busy [N]', 'rejects the next N sends as throttled (1)'],
  ['full [N]', 'rejects the next N sends because a quota is used up (1)'],
  ['silent [N]', 'never answers the next N sends (1)'],
  ['unauthorized [SECONDS]', 'refuses tokens and links (10)'],
  ['disable ENTITY', 'disables an entity until clear'],
  ['slow MS', 'lets every answer to a send wait until clear'],
  ['freeze', 'stands still until thaw'],
  ['thaw', 'goes on'],
  ['refuse', 'refuses new connections until clear'],
  ['restart', 'breaks every connection and listens again, with what the entities hold'],
  ['clear', 'ends every fault'],
]

/** Carries out one line; gives what to answer. */
export async function faultCommand(broker: Broker, line: string): Promise<string> {
  const [verb = '', argument] = line.trim().split(/\s+/)
  const count = (otherwise: number): number => (argument !== undefined && Number(argument) > 0 ? Number(argument) : otherwise)
  const { faults } = broker
  switch (verb) {
    case 'drop':
      return `${faults.dropConnections()} connections broken`
    case 'detach':
      return `${faults.detachLinks(argument ?? null)} links detached`
    case 'busy':
      faults.serverBusy({ times: count(1) })
      return `the next ${count(1)} sends are throttled`
    case 'full':
      faults.resourceLimitExceeded({ times: count(1) })
      return `the next ${count(1)} sends exceed the quota`
    case 'silent':
      faults.ignoreSends({ times: count(1) })
      return `the next ${count(1)} sends are not answered`
    case 'unauthorized':
      faults.unauthorized({ seconds: count(10) })
      return `tokens and links are refused for ${count(10)} s`
    case 'disable':
      if (argument === undefined) return 'expected: disable ENTITY'
      faults.disableEntity(argument)
      return `${argument} is disabled`
    case 'slow':
      faults.slow(count(1000))
      return `answers to sends wait ${count(1000)} ms`
    case 'freeze':
      faults.freeze()
      return 'frozen'
    case 'thaw':
      faults.thaw()
      return 'thawed'
    case 'refuse':
      await faults.refuseConnections()
      return 'new connections are refused'
    case 'restart':
      await broker.restart()
      return 'restarted'
    case 'clear':
      await faults.clear()
      return 'all faults are over'
    default:
      return `expected one of: ${faultCommands.map(([command]) => command).join(', ')}`
  }
}
