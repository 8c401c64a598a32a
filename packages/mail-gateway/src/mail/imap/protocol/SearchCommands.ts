/** Parses SEARCH, SORT and THREAD with their return options. */
import type { Action, SearchReturn, SortKey } from "./Command.ts"
import { Malformed, type Reader } from "./Reader.ts"
import type { CommandInput } from "./Arguments.ts"
import * as SearchKeys from "./SearchKeys.ts"

const searchReturns = new Set(["MIN", "MAX", "COUNT", "ALL", "SAVE"])

const returning = (reader: Reader): SearchReturn["returns"] | undefined => {
  if (!reader.follows("RETURN (")) return undefined
  reader.word()
  reader.space()
  const options = reader.list(() => reader.word(), 0)
  for (const option of options)
    if (!searchReturns.has(option)) throw new Malformed(`Unknown return option ${option.slice(0, 40)}`)
  reader.space()
  // The loop above checked each option.
  const found = options as ReadonlyArray<"MIN" | "MAX" | "COUNT" | "ALL" | "SAVE">
  return new Set(found.length === 0 ? ["ALL"] : found)
}

const charset = (reader: Reader) => reader.astring().toString("latin1").toUpperCase()

export const searching = ({ reader, uid }: CommandInput): Action => {
  reader.space()
  const returns = returning(reader)
  let set: string | undefined
  if (reader.follows("CHARSET ")) {
    reader.word()
    reader.space()
    set = charset(reader)
    reader.space()
  }
  return { name: "SEARCH", uid, returns, charset: set, key: SearchKeys.keys(reader) }
}

const sortKeys = new Set(["ARRIVAL", "CC", "DATE", "FROM", "SIZE", "SUBJECT", "TO", "DISPLAYFROM", "DISPLAYTO"])

export const sorting = ({ reader, uid }: CommandInput): Action => {
  reader.space()
  const returns = returning(reader)
  const keys: Array<SortKey> = []
  reader.list(() => {
    let by = reader.word()
    const reverse = by === "REVERSE"
    if (reverse) {
      reader.space()
      by = reader.word()
    }
    if (!sortKeys.has(by) || keys.length >= 20) throw new Malformed(`Unknown sort key ${by.slice(0, 40)}`)
    keys.push({ by: by as SortKey["by"], reverse })
  })
  reader.space()
  const set = charset(reader)
  reader.space()
  return { name: "SORT", uid, returns, charset: set, keys, key: SearchKeys.keys(reader) }
}

export const threading = ({ reader, uid }: CommandInput): Action => {
  reader.space()
  const algorithm = reader.word()
  reader.space()
  const set = charset(reader)
  reader.space()
  return { name: "THREAD", uid, algorithm, charset: set, key: SearchKeys.keys(reader) }
}
