import { hostname, userInfo } from 'node:os'
import { Option, type Command } from 'commander'
import { ForeshockError } from '../../sinks/error.ts'
import type { Config } from '../config/load.ts'
import type { AddCommand } from './program.ts'
import { exit } from './exit.ts'
import { number } from './number.ts'

export interface AskOptions {
  readonly config?: string
  readonly digest?: string
  readonly reason?: string
  readonly requestedBy?: string
  readonly via?: 'queue'
  readonly sign?: readonly string[]
  readonly subject?: readonly string[]
  readonly issuer?: string
  readonly audience?: string
  readonly session?: string
  readonly expires: number
  readonly wait: number
  readonly json?: boolean
}

export const add: AddCommand = (program, run) => {
  const command = program
    .command('approve')
    .description('approves an event: Azure may start it now, for all its Resources, and there is no undo')
  askOptions(command).action((event: string, options: AskOptions) => run(() => ask('approve', event, options)))
}

/** What `approve` and `hold` have in common. */
export function askOptions(command: Command): Command {
  return command
    .argument('<event>', 'EventId, or the id of its CloudEvent, which binds the approval to the state that it tells')
    .option('--config <file>', 'configuration file')
    .option('--digest <hex>', 'digest of the state that was seen, 16 to 64 hex digits: anything else now is state_changed')
    .option('--reason <text>', 'why; stands in the event that tells the outcome')
    .option('--requested-by <name>', 'who asks (default: this user at this host)')
    .addOption(new Option('--via <way>', 'through the control queue instead of the forwarder on this machine').choices(['queue']))
    .option('--sign <keyfile...>', 'signs the message with these private keys; with --via queue')
    .option('--subject <name...>', 'who signs, one for each key (default: as --requested-by)')
    .option('--issuer <name>', 'iss of the signed message (default: this host)')
    .option('--audience <source>', 'aud of the signed message: `source` of the event (default: identity.source)')
    .option('--session <id>', 'session of the control queue (default: control.session, where that is a fixed one)')
    .option('--expires <seconds>', 'how long the message is good', number(1, 600), 300)
    .option('--wait <seconds>', 'how long to wait for the outcome; 0 only sends', number(0, 3600), 60)
    .option('--json', 'machine-readable output')
}

export async function ask(command: 'approve' | 'hold' | 'release', event: string, options: AskOptions): Promise<number> {
  const { loadConfig } = await import('../config/load.ts')
  const config = await loadConfig(options.config, process.env)
  const wanted = wantedOf(event, options.digest)
  if (options.via === 'queue') {
    if (command === 'release') throw new ForeshockError('usage', 'a hold is released only on its own machine: leave out --via')
    return await askThroughQueue(command, wanted, options, config)
  }
  if (options.sign !== undefined) throw new ForeshockError('usage', 'a signature is for the control queue: add --via queue')
  if (config.approvals === undefined && config.control === undefined) {
    throw new ForeshockError(
      'config_invalid',
      'nothing is approved without a section approvals (or control) in the configuration: add one, and restart the forwarder',
    )
  }
  const { askForwarder } = await import('../approvals/ask-forwarder.ts')
  const expiresAt = Date.now() + Math.max(options.wait, 1) * 1000
  const asked = { command, ...wanted, requestedBy: requesterOf(options), reason: options.reason ?? null, expiresAt }
  const answer = await askForwarder(config.state.path, asked, Date.now)
  if (answer === undefined)
    return noAnswer(
      `the forwarder gave no answer within ${options.wait} s; nothing is begun any more, but a POST that was on its way may still take effect: see foreshock events`,
      options,
    )
  return told(answer.code, answer.detail, answer.event, command, options)
}

async function askThroughQueue(command: 'approve' | 'hold', wanted: Wanted, options: AskOptions, config: Config): Promise<number> {
  const { control } = config
  if (control === undefined)
    throw new ForeshockError('config_invalid', 'expected a section control in the configuration: it says where the control queue is')
  const { askQueue } = await import('../approvals/ask-queue.ts')
  const signed = options.sign !== undefined
  if (!signed && control.trust.type === 'signed') {
    throw new ForeshockError('usage', 'control.trust is signed: sign the message with --sign KEYFILE')
  }
  const body = signed ? await signedBody(command, wanted, options, config) : plainBody(command, wanted, options)
  const reply = await askQueue({
    control,
    env: process.env,
    body,
    contentType: signed ? 'application/jose' : 'application/json',
    sessionId: sessionOf(control.session, options.session),
    timeToLiveMs: options.expires * 1000,
    waitMs: options.wait * 1000,
  })
  if (reply.event === undefined) {
    const sent = `sent as ${reply.messageId}`
    if (options.wait > 0 && control.replies !== undefined)
      return noAnswer(`${sent}; no reply within ${options.wait} s: see the events of the forwarder`, options)
    process.stdout.write(
      options.json === true
        ? `${JSON.stringify({ messageId: reply.messageId })}\n`
        : `${sent}; without control.replies nobody waits for the outcome\n`,
    )
    return exit.done
  }
  const data = record(record(reply.event)['data'])
  return told(String(data['code']), String(data['detail']), record(reply.event), command, options)
}

interface Wanted {
  readonly eventId: string
  readonly digest: string | null
}

/** `{eventid}:{status}:{digest16}` is the id of a CloudEvent about it. */
function wantedOf(event: string, digest: string | undefined): Wanted {
  const [, eventId, seen] = /^([^:]+):[a-z0-9]+:([0-9a-f]{16})(?:[:@].*)?$/.exec(event) ?? []
  const bound = digest ?? seen ?? null
  if (bound !== null && !/^[0-9a-fA-F]{16,64}$/.test(bound)) {
    throw new ForeshockError('usage', `expected a digest of 16 to 64 hex digits, got ${JSON.stringify(bound)}`)
  }
  return { eventId: eventId ?? event, digest: bound?.toLowerCase() ?? null }
}

function plainBody(command: string, { eventId, digest }: Wanted, options: AskOptions): Buffer {
  const expiresAt = new Date(Date.now() + options.expires * 1000).toISOString()
  const { reason } = options
  return Buffer.from(
    JSON.stringify({
      command,
      eventId,
      ...(digest !== null && { digest }),
      requestedBy: requesterOf(options),
      ...(reason !== undefined && { reason }),
      expiresAt,
    }),
  )
}

async function signedBody(command: string, { eventId, digest }: Wanted, options: AskOptions, config: Config): Promise<Buffer> {
  const { readSigningKey, sign } = await import('../approvals/signing-key.ts')
  if (digest === null)
    throw new ForeshockError(
      'usage',
      'a signed approval is bound to a state: give the id of its CloudEvent instead of the EventId, or --digest',
    )
  const audience = options.audience ?? config.identity.source
  if (audience === undefined) throw new ForeshockError('usage', 'expected --audience: the source of the event, as its CloudEvent says')
  const keys = await Promise.all((options.sign ?? []).map(readSigningKey))
  const subjects = options.subject ?? []
  if (subjects.length > 0 && subjects.length !== keys.length) {
    throw new ForeshockError('usage', `expected a --subject for each of ${keys.length} keys, got ${subjects.length}`)
  }
  const { randomUUID } = await import('node:crypto')
  const iat = Math.floor(Date.now() / 1000)
  const { reason } = options
  const claims = {
    iss: options.issuer ?? hostname(),
    aud: audience.toLowerCase(),
    jti: randomUUID(),
    iat,
    exp: iat + options.expires,
    evt: { command, eventId, digest, ...(reason !== undefined && { reason }) },
  }
  return await sign(
    claims,
    keys.map((key, index) => ({ key, subject: subjects[index] ?? requesterOf(options) })),
  )
}

function sessionOf(configured: string, given: string | undefined): string | null {
  if (given !== undefined) return given
  if (configured === 'none') return null
  if (configured === 'vm' || configured === 'group') {
    throw new ForeshockError(
      'usage',
      `control.session is ${configured}: say with --session which ${configured === 'vm' ? 'VM' : 'scale set'} is meant`,
    )
  }
  return configured
}

/** Behind sudo stands a person. */
const requesterOf = ({ requestedBy }: AskOptions): string =>
  requestedBy ?? `${process.env['SUDO_USER'] ?? userInfo().username}@${hostname()}`

const done: ReadonlySet<string> = new Set(['ok', 'event_already_started'])

function told(code: string, detail: string, event: unknown, command: string, { json }: AskOptions): number {
  const held = command === 'hold' && (code === 'held' || code === 'ok')
  const good = held || done.has(code)
  const word = held
    ? 'held'
    : code === 'ok'
      ? command === 'release'
        ? 'released'
        : 'approved'
      : `${good ? 'nothing to do' : 'refused'}: ${code}`
  process.stdout.write(json === true ? `${JSON.stringify({ code, detail, event })}\n` : `${word}: ${detail}\n`)
  return good ? exit.done : exit.failed
}

function noAnswer(text: string, { json }: AskOptions): number {
  if (json === true) process.stdout.write(`${JSON.stringify({ code: null, detail: text, event: null })}\n`)
  else process.stderr.write(`foreshock: ${text}\n`)
  return exit.tryAgain
}

const record = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? { ...value } : {})
