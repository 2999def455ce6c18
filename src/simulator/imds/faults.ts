import { bytesAnswer, jsonAnswer, textAnswer, type Answer } from './answer.ts'
import type { Fault, HandFault } from './scenario-fault.ts'

/** What a fault can hit. */
export type Target = Fault['on'][number]

/** Chooses the fault of each request: one set by hand first, then the first of the scenario that fits. */
export class Faults {
  readonly #scheduled: readonly Fault[]
  readonly #seen = new Map<Fault | HandFault, Map<number, number>>()
  #byHand: HandFault | null = null
  #used = 0

  constructor(scheduled: readonly Fault[]) {
    this.#scheduled = scheduled
  }

  set(fault: HandFault | null): void {
    this.#byHand = fault
    this.#used = 0
    this.#seen.clear()
  }

  /** Counts the request of machine `vm`; null: it goes well. */
  next(vm: number, target: Target, elapsedSeconds: number): Fault | HandFault | null {
    const byHand = this.#byHand
    if (byHand !== null && this.#used < (byHand.times ?? Number.POSITIVE_INFINITY) && this.#hits(byHand, vm, target)) {
      this.#used += 1
      return byHand
    }
    const now = this.#scheduled.filter(
      ({ atSeconds, forSeconds }) => atSeconds <= elapsedSeconds && elapsedSeconds < atSeconds + forSeconds,
    )
    return now.find((fault) => this.#hits(fault, vm, target)) ?? null
  }

  #hits(fault: Fault | HandFault, vm: number, target: Target): boolean {
    if (!(fault.on ?? [target]).includes(target)) return false
    const seen = this.#seen.get(fault) ?? new Map<number, number>()
    const count = (seen.get(vm) ?? 0) + 1
    this.#seen.set(fault, seen.set(vm, count))
    return count % (fault.every ?? 1) === 0
  }
}

/** The answer of something in front of IMDS, which the request never reaches; null: it is carried out, and only its answer may suffer. */
export function answerInstead(fault: Fault | HandFault | null): Answer | null {
  if (fault?.kind === 'html') return bytesAnswer(fault.status ?? 502, Buffer.from(proxyPage(fault.status ?? 502)), 'text/html')
  if (fault?.kind !== 'status') return null
  const usual = fault.body === undefined ? usualAnswer(fault.status) : textAnswer(fault.status, fault.body)
  return 'noAnswer' in usual ? usual : { ...usual, headers: { ...usual.headers, ...fault.headers } }
}

/** What the fault makes of an answer, apart from delay and truncation, which happen on the wire. */
export function spoil(answer: Answer, fault: Fault | HandFault | null): Answer {
  switch (fault?.kind) {
    case 'reset':
    case 'hang':
      return { noAnswer: fault.kind }
    case 'empty':
      return { status: 200, headers: {}, body: Buffer.alloc(0) }
    case 'garbage':
      return bytesAnswer(200, Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0xc3, 0x28, 0x5d, 0x80]), 'application/json; charset=utf-8')
    default:
      return answer
  }
}

/** Bodies as they were seen or are documented: JSON for 429, nothing for 410. */
function usualAnswer(status: number): Answer {
  if (status === 429) return jsonAnswer(429, { error: 'Too many requests' })
  if (status === 410 || status === 304 || status === 204) return { status, headers: {}, body: Buffer.alloc(0) }
  return textAnswer(status, status >= 500 ? 'Internal server error' : `Status ${status}`)
}

function proxyPage(status: number): string {
  const title = status === 502 ? '502 Bad Gateway' : `${status}`
  const lines = ['<html>', `<head><title>${title}</title></head>`, `<body><center><h1>${title}</h1></center></body>`, '</html>', '']
  return lines.join('\r\n')
}
