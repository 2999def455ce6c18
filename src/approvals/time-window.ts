const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
type Day = (typeof days)[number]

/** A time of the day, on some days; one that ends before it begins goes on past midnight and belongs to the day on which it began. */
export interface TimeWindow {
  readonly days?: readonly Day[] | undefined
  /** `HH:MM`, included. */
  readonly from: string
  /** `HH:MM`, excluded; `24:00` is the end of the day. */
  readonly to: string
  /** IANA name. */
  readonly timeZone: string
}

/** Whether a moment (milliseconds since the epoch) lies in the window, by the clock on the wall of its time zone. */
export function isWithin({ days: allowed, from, to, timeZone }: TimeWindow, at: number): boolean {
  const { day, minutes } = wallClock(at, timeZone)
  const [begin, end] = [minutesOf(from), minutesOf(to)]
  const on = (which: number): boolean => allowed === undefined || allowed.some((one) => one === days[which])
  if (begin < end) return on(day) && minutes >= begin && minutes < end
  return (on(day) && minutes >= begin) || (on((day + 6) % 7) && minutes < end)
}

function wallClock(at: number, timeZone: string): { readonly day: number; readonly minutes: number } {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const day = days.findIndex((one) => one === parts['weekday']?.toLowerCase())
  return { day, minutes: Number(parts['hour']) * 60 + Number(parts['minute']) }
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':')
  return Number(hours) * 60 + Number(minutes)
}
