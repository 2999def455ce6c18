/** The incarnation as a number that can be compared and subtracted, null where it is no safe integer >= 0. A string is unknown. */
export function incarnationNumber(incarnation: number | string | null): number | null {
  return typeof incarnation === 'number' && Number.isSafeInteger(incarnation) && incarnation >= 0 ? incarnation : null
}
