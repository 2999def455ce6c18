const seconds = /^\d+$/
/** The three forms of RFC 9110, 5.6.7: IMF-fixdate, the obsolete RFC 850 form and asctime; all of them are UTC. */
const fixdate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const rfc850 = /^[A-Z][a-z]+day, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}:\d{2}:\d{2}) GMT$/
const asctime = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Milliseconds to wait by a Retry-After header, seconds or date, counted from `nowMs` (milliseconds since the epoch).
 * 0 where the date has passed, undefined where the header is missing or unreadable. Not capped: what is too long is the caller's to say.
 *
 * Source: https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim()
  if (text === undefined) return undefined
  if (seconds.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER)
  const date = parseHttpDate(text, nowMs)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}

function parseHttpDate(text: string, nowMs: number): number {
  if (fixdate.test(text)) return Date.parse(text)
  // Without a zone, Date.parse would take it as local time.
  if (asctime.test(text)) return Date.parse(`${text} GMT`)
  const [, day, month, shortYear, time] = rfc850.exec(text) ?? []
  if (shortYear === undefined) return Number.NaN
  // Two digits mean the year with them that is at most 50 years ahead.
  const thisYear = new Date(nowMs).getUTCFullYear()
  const year = Math.floor(thisYear / 100) * 100 + Number(shortYear)
  return Date.parse(`${day} ${month} ${year > thisYear + 50 ? year - 100 : year} ${time} GMT`)
}
