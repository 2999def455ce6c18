const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** `Mon, 11 Apr 2022 22:26:58 GMT`. The weekday is not looked at: Microsoft's own samples carry wrong ones. */
const rfc1123 =
  /^(?:[a-z]{3,9}, *)?(?<day>\d{1,2}) (?<name>[a-z]{3}) (?<year>\d{4}) (?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2}) (?:GMT|UTC|Z)$/i

/** `2016-09-19T18:29:47Z`, with a fraction or an offset; without either the time is UTC, as the API documents NotBefore. */
const iso8601 =
  /^(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})[T ](?<hour>\d{2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:[.,]\d+)?)?(?<zone>Z|[+-]\d{2}:?\d{2})?$/i

/**
 * A NotBefore as ISO 8601 in UTC with whole seconds, null where it is neither of the two forms or no date of the calendar.
 * Not `Date.parse`: it takes `20170702` for a year and rolls 31 February over.
 */
export function parseNotBefore(text: string): string | null {
  const groups = (rfc1123.exec(text) ?? iso8601.exec(text))?.groups
  if (groups === undefined) return null
  const { year, month, name, day, hour, minute, second, zone } = groups
  const monthIndex = name === undefined ? Number(month) - 1 : months.indexOf(name.toLowerCase())
  const fields = [Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second ?? 0)] as const
  const local = new Date(Date.UTC(...fields))
  const kept = [
    local.getUTCFullYear(),
    local.getUTCMonth(),
    local.getUTCDate(),
    local.getUTCHours(),
    local.getUTCMinutes(),
    local.getUTCSeconds(),
  ]
  if (fields.some((field, index) => field !== kept[index])) return null
  const offset = offsetMinutes(zone)
  if (offset === null) return null
  const written = new Date(local.getTime() - offset * 60_000).toISOString()
  return written.length === '0000-00-00T00:00:00.000Z'.length ? written.replace('.000Z', 'Z') : null
}

function offsetMinutes(zone: string | undefined): number | null {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(-2))
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
