/**
 * Formats responses for people: a list as a table, series as one table of their values, anything else as names and
 * values. A column is a path into the entry (`post.author`), or `what`, the sentence of an Event.
 */
import { eventSentence } from "@svc/domain/events/EventSentences"
import type { UsageSeries } from "@svc/domain/usage/UsageApi"
import { terminalText } from "../client/Printing.ts"

type Series = (typeof UsageSeries)["Encoded"]
type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isPlain = (value: unknown) => typeof value !== "object" || value === null

const word = (value: unknown): string =>
  value === null || value === undefined ? "-" : typeof value === "string" ? value : JSON.stringify(value)

/** Number of columns if none are specified. */
const plainColumns = 7
/**
 * Maximum width of a cell, including the last column. Ids are shorter, so they can be copied as arguments of commands.
 */
const widest = 60
const widestLast = 160

const instant = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/

/** Formats a value for a cell: an address by its address, a list by its first item and the number of others. */
const shown = (value: unknown): string => {
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (typeof value === "string") return value.replace(instant, "$1 $2Z")
  if (Array.isArray(value)) {
    if (value.length === 0) return "-"
    if (value.every(isPlain)) return value.join(" ")
    const more = value.length > 1 ? ` +${value.length - 1}` : ""
    return value.some((one) => isObject(one) && "address" in one) ? `${shown(value[0])}${more}` : String(value.length)
  }
  if (isObject(value) && typeof value["address"] === "string") return value["address"]
  return word(value)
}

const oneLine = (value: unknown, most: number) => {
  const text = terminalText(shown(value)).replace(/\s+/g, " ")
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

const at = (row: Members, column: string): unknown =>
  column === "what"
    ? eventSentence("en", row)
    : column.split(".").reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), row)

/** The narrowest column that still tells something. */
const narrowest = 8

/**
 * Narrows the widest columns until a line fits into the terminal. Ids stay whole, so that they can be copied. Output that goes to a file or
 * another program is not narrowed.
 */
const fitted = (columns: ReadonlyArray<string>, widths: ReadonlyArray<number>): ReadonlyArray<number> => {
  const fit = [...widths]
  const room = process.stdout.isTTY ? (process.stdout.columns ?? Infinity) : Infinity
  const isWhole = (at: number) => /(?:^|[._])(?:id|handle|address)$/.test(columns[at]!)
  for (let over = fit.reduce((sum, one) => sum + one + 2, -2) - room; over > 0; over--) {
    const widest = Math.max(0, ...fit.filter((_, at) => !isWhole(at)))
    if (widest <= narrowest) break
    fit[fit.findIndex((one, at) => one === widest && !isWhole(at))]!--
  }
  return fit
}

const table = (rows: ReadonlyArray<Members>, wanted?: ReadonlyArray<string>): string => {
  const columns =
    wanted ??
    [...new Set(rows.flatMap((row) => Object.keys(row).filter((key) => isPlain(row[key]))))].slice(0, plainColumns)
  const cells = [
    columns.map((name) => name.split(".").at(-1)!.toUpperCase()),
    ...rows.map((row) =>
      columns.map((name, place) => oneLine(at(row, name), place === columns.length - 1 ? widestLast : widest)),
    ),
  ]
  const widths = fitted(
    columns,
    columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length))),
  )
  return cells
    .map((line) =>
      line
        .map((cell, at) =>
          (cell.length > widths[at]! ? `${cell.slice(0, widths[at]! - 1)}…` : cell).padEnd(widths[at]!),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

const pairs = (value: Members, indent = "", columns?: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.entries(value).flatMap(([name, member]) => {
    if (isObject(member)) return [`${indent}${name}:`, ...pairs(member, `${indent}  `)]
    if (Array.isArray(member) && member.some(isObject)) {
      return [
        `${indent}${name}:`,
        ...table(member.filter(isObject), columns)
          .split("\n")
          .map((line) => `${indent}  ${line}`),
      ]
    }
    const text = terminalText(word(member))
    return text.includes("\n")
      ? [`${indent}${name}:`, ...text.split("\n").map((line) => `${indent}  ${line}`)]
      : [`${indent}${name}: ${text}`]
  })

/** Formats series as one table: a line per time, and a column per series that has points. */
const seriesTable = (series: ReadonlyArray<Series>): string => {
  const rows = new Map<string, Record<string, unknown>>()
  const columns = ["at"]
  for (const { metric, identity, webhook_id, points } of series) {
    const column = [metric, metric === "activity" ? identity : webhook_id].filter(Boolean).join(" ")
    if (points.length > 0) columns.push(column)
    for (const { at, value } of points) rows.set(at, { ...(rows.get(at) ?? { at }), [column]: value })
  }
  return rows.size === 0
    ? "There was no activity."
    : table(
        [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row),
        columns,
      )
}

export const pretty = (body: unknown, columns?: ReadonlyArray<string>): string => {
  if (!isObject(body)) return word(body)
  const members = Object.entries(body)
  if (members.length === 0) return "Done."
  const { series, ...span } = body
  if (Array.isArray(series)) return [...pairs(span), seriesTable(series)].join("\n")
  const [list, ...lists] = members.filter(([, value]) => Array.isArray(value))
  const rest = members.filter(([, value]) => !Array.isArray(value) && value !== null)
  const isList = lists.length === 0 && rest.every(([name]) => /^(?:next_)?cursor$|^after$/.test(name))
  if (list === undefined || !isList) return pairs(body, "", columns).join("\n")
  const rows = (list[1] as ReadonlyArray<unknown>).filter(isObject)
  const more = rest.map(([name, value]) =>
    name === "after" ? `Continue with --after ${word(value)}` : `More with --cursor ${word(value)}`,
  )
  return [rows.length === 0 ? `There are no ${list[0].replaceAll("_", " ")}.` : table(rows, columns), ...more].join(
    "\n",
  )
}
