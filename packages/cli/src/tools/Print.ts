/** An answer for people: a list as a table of its plain members, anything else as names and values. */
import { harmless } from "../client/Harmless.ts"

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isPlain = (value: unknown) => typeof value !== "object" || value === null

const word = (value: unknown): string =>
  value === null || value === undefined ? "-" : typeof value === "string" ? value : JSON.stringify(value)

const oneLine = (value: unknown) => {
  const text = harmless(word(value)).replace(/\s+/g, " ")
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

const table = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>): string => {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row).filter((key) => isPlain(row[key]))))].slice(0, 7)
  const cells = [
    columns.map((name) => name.toUpperCase()),
    ...rows.map((row) => columns.map((name) => oneLine(row[name]))),
  ]
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)))
  return cells
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

const pairs = (value: Readonly<Record<string, unknown>>, indent = ""): ReadonlyArray<string> =>
  Object.entries(value).flatMap(([name, member]) => {
    if (isObject(member)) return [`${indent}${name}:`, ...pairs(member, `${indent}  `)]
    if (Array.isArray(member) && member.some(isObject)) {
      return [
        `${indent}${name}:`,
        ...table(member.filter(isObject))
          .split("\n")
          .map((line) => `${indent}  ${line}`),
      ]
    }
    const text = harmless(word(member))
    return text.includes("\n")
      ? [`${indent}${name}:`, ...text.split("\n").map((line) => `${indent}  ${line}`)]
      : [`${indent}${name}: ${text}`]
  })

export const pretty = (body: unknown): string => {
  if (!isObject(body)) return word(body)
  const members = Object.entries(body)
  if (members.length === 0) return "Done."
  const [list] = members.filter(([, value]) => Array.isArray(value))
  const rest = members.filter(([, value]) => !Array.isArray(value) && value !== null)
  if (list !== undefined && rest.every(([name]) => name === "next_cursor")) {
    const rows = (list[1] as ReadonlyArray<unknown>).filter(isObject)
    const more = rest.map(([name, value]) => `${name}: ${word(value)}`)
    return [rows.length === 0 ? `There are no ${list[0].replaceAll("_", " ")}.` : table(rows), ...more].join("\n")
  }
  return pairs(body).join("\n")
}
