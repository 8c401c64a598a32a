/**
 * Reads and writes IMAP dates: those of SEARCH (`1-Feb-2026`) and of messages (`" 1-Feb-2026 10:00:00 +0100"`). RFC
 * 9051 section 9.
 */

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
const names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

const dayOf = (year: string, month: string, day: string): number | undefined => {
  const number = months.indexOf(month.toLowerCase())
  // `Date.UTC` would move the years 0 to 99 into the 20th century.
  const date = new Date(0)
  date.setUTCFullYear(Number(year), number, Number(day))
  return number >= 0 && date.getUTCDate() === Number(day) ? date.getTime() : undefined
}

/** Returns a day as `YYYY-MM-DD`, or undefined if it is invalid. */
export const day = (text: string): string | undefined => {
  const [, date, month, year] = /^(\d{1,2})-([A-Za-z]{3})-(\d{4})$/.exec(text) ?? []
  if (date === undefined || month === undefined || year === undefined) return undefined
  const at = dayOf(year, month, date)
  return at === undefined ? undefined : new Date(at).toISOString().slice(0, 10)
}

/** A point in time and its time zone in minutes east of UTC. */
export interface Zoned {
  readonly at: Date
  readonly zone: number
}

/** Parses a date and time; returns undefined if it is invalid. */
export const time = (text: string): Zoned | undefined => {
  const match = /^([ \d]\d)-([A-Za-z]{3})-(\d{4}) (\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/.exec(text)
  if (match === null) return undefined
  const [, date, month, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match
  const start = dayOf(year!, month!, date!)
  const [h, m, s, zh, zm] = [hour, minute, second, zoneHours, zoneMinutes].map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ]
  if (start === undefined || h > 23 || m > 59 || s > 60 || zh > 23 || zm > 59) return undefined
  const zone = (zh * 60 + zm) * (sign === "-" ? -1 : 1)
  return { at: new Date(start + ((h * 60 + m) * 60 + s) * 1000 - zone * 60_000), zone }
}

const two = (number: number) => String(number).padStart(2, "0")

/** Formats a time as INTERNALDATE, in its own time zone. */
export const write = ({ at, zone }: Zoned): string => {
  const there = new Date(at.getTime() + zone * 60_000)
  const minutes = Math.abs(zone)
  const offset = `${zone < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}${two(minutes % 60)}`
  return `"${String(there.getUTCDate()).padStart(2, " ")}-${names[there.getUTCMonth()]}-${String(there.getUTCFullYear()).padStart(4, "0")} ${two(there.getUTCHours())}:${two(there.getUTCMinutes())}:${two(there.getUTCSeconds())} ${offset}"`
}
