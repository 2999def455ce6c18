import type { EndTransition, Evidence } from './model.ts'

/** All that is known when an event is no longer in the document. */
export interface Absence {
  /** Its last status; `other` for one that is unknown. */
  readonly lastStatus: 'scheduled' | 'started' | 'other'
  /** It was seen as Started at some time, if not last. */
  readonly hadStarted: boolean
  /** Incarnation now minus incarnation when last seen, null where that says nothing: either is unknown, or they are of two epochs. */
  readonly d: number | null
  readonly gapSeconds: number
  readonly bootChanged: boolean | null
  /** Our own approval was answered 200. */
  readonly approved: boolean
  /** A Reboot or Redeploy that names this VM. */
  readonly restartsThisVm: boolean
  /** NotBefore lies after the last good reading and not after this one. */
  readonly notBeforePassed: boolean
  /** Why nothing can be concluded, whatever else is known. */
  readonly inconclusive: 'gap' | 'restart' | 'unreadable' | null
}

export interface Verdict {
  readonly outcome: EndTransition['outcome']
  readonly evidence: Evidence
}

type Judgement = Pick<Verdict, 'outcome'> & Pick<Evidence, 'rule' | 'likely' | 'inconclusive'>

/** One change of the document cannot hold both a start and an end; what had started before, or may have, is not meant by that. */
const cannotHaveRun = (absence: Absence): boolean =>
  absence.d === 1 && absence.lastStatus === 'scheduled' && !absence.hadStarted && !absence.approved
const hasRun = (absence: Absence): boolean => absence.approved || (absence.restartsThisVm && absence.bootChanged === true)
/** An unknown distance counts as one that leaves room for a start. */
const mayHaveRun = (absence: Absence): boolean => (absence.d === null || absence.d >= 2) && absence.notBeforePassed

/** Top to bottom: the first row that does not answer null decides. */
const rows: readonly ((absence: Absence) => Judgement | null)[] = [
  (absence) => (absence.inconclusive === null ? null : { ...vanished(absence), inconclusive: absence.inconclusive }),
  (absence) => (absence.lastStatus === 'started' ? { outcome: 'completed', rule: 'started' } : null),
  (absence) => (cannotHaveRun(absence) && hasRun(absence) ? contradiction : null),
  (absence) => (cannotHaveRun(absence) ? { outcome: 'cancelled', rule: 'A' } : null),
  (absence) => (hasRun(absence) ? { outcome: 'completed', rule: 'B' } : null),
  (absence) => (mayHaveRun(absence) ? { outcome: 'vanished', rule: 'C', likely: 'completed' } : null),
]

/** What became of an event that is no longer in the document. "Before NotBefore" alone proves nothing: an approval shortens the wait. */
export function judge(absence: Absence): Verdict {
  let judgement: Judgement | null = null
  for (const row of rows) judgement ??= row(absence)
  const { outcome, ...reasons } = judgement ?? vanished(absence)
  const { d, gapSeconds, bootChanged } = absence
  return { outcome, evidence: { d, gapSeconds, bootChanged, ...reasons } }
}

const contradiction: Judgement = { outcome: 'vanished', rule: 'D', likely: 'completed', inconclusive: 'contradiction' }

/** Rule D. What had started ran, most likely. */
const vanished = ({ hadStarted }: Absence): Judgement => ({
  outcome: 'vanished',
  rule: 'D',
  ...(hadStarted ? { likely: 'completed' } : {}),
})
