/**
 * Parses the search keys of SEARCH, SORT and THREAD (RFC 9051 section 6.4.4, RFC 5032, RFC 7162, RFC 8474) into a tree.
 */
import * as Dates from "./Dates.ts"
import { limits as readerLimits, Malformed, type Reader, textOf } from "./Reader.ts"
import * as Sets from "./Sets.ts"

export type SearchKey =
  | { readonly _tag: "All" }
  | { readonly _tag: "And"; readonly keys: ReadonlyArray<SearchKey> }
  | { readonly _tag: "Or"; readonly either: SearchKey; readonly or: SearchKey }
  | { readonly _tag: "Not"; readonly key: SearchKey }
  /** System flags with their backslash, lower case. */
  | { readonly _tag: "Flag"; readonly flag: string }
  | { readonly _tag: "Numbers"; readonly set: Sets.SequenceSet; readonly uid: boolean }
  /** `$`: the result of the last search. */
  | { readonly _tag: "Saved" }
  /** Messages that are recent in the session (RFC 3501 section 2.3.2). */
  | { readonly _tag: "Recent" }
  | {
      readonly _tag: "Day"
      readonly of: "received" | "sent"
      readonly is: "before" | "on" | "since"
      readonly day: string
    }
  | { readonly _tag: "Age"; readonly is: "older" | "younger"; readonly seconds: number }
  | { readonly _tag: "Size"; readonly is: "larger" | "smaller"; readonly bytes: number }
  | {
      readonly _tag: "Text"
      readonly in: "from" | "to" | "cc" | "bcc" | "subject" | "body" | "text"
      readonly text: string
    }
  | { readonly _tag: "Header"; readonly name: string; readonly text: string }
  | { readonly _tag: "Modseq"; readonly atLeast: number }
  | { readonly _tag: "Id"; readonly of: "email" | "thread"; readonly id: string }

/** Maximum keys of one search. */
const most = 500

/** Maximum bytes of a search text. */
const textBytes = 1_000

const flags: Readonly<Record<string, string>> = {
  ANSWERED: "\\answered",
  DELETED: "\\deleted",
  DRAFT: "\\draft",
  FLAGGED: "\\flagged",
  SEEN: "\\seen",
}

const days: Readonly<Record<string, readonly ["received" | "sent", "before" | "on" | "since"]>> = {
  BEFORE: ["received", "before"],
  ON: ["received", "on"],
  SINCE: ["received", "since"],
  SENTBEFORE: ["sent", "before"],
  SENTON: ["sent", "on"],
  SENTSINCE: ["sent", "since"],
}

/** Keys that the session resolves to UIDs. */
export type NumbersKey = Extract<SearchKey, { readonly _tag: "Numbers" | "Saved" | "Recent" }>

/** Parses the keys up to the end of the command. */
export const keys = (reader: Reader): SearchKey => {
  let left = most

  const text = (): string => {
    const bytes = reader.astring()
    if (bytes.length > textBytes) throw new Malformed("The text to search for is too long")
    return textOf(bytes)
  }

  const several = (depth: number): SearchKey => {
    const found = [key(depth)]
    while (!reader.isDone && reader.peek !== ")") {
      reader.space()
      if (reader.isDone) break
      found.push(key(depth))
    }
    return found.length === 1 ? found[0]! : { _tag: "And", keys: found }
  }

  const key = (depth: number): SearchKey => {
    if (depth > readerLimits.depth || left-- <= 0) throw new Malformed("The search is too large")
    if (reader.takes("(")) {
      const inner = several(depth + 1)
      reader.expect(")")
      return inner
    }
    if (reader.takes("$")) return { _tag: "Saved" }
    if (/[\d*]/.test(reader.peek)) {
      const set = Sets.read(reader.upTo(/[ )]/))
      if (set === undefined) throw new Malformed("Invalid message set")
      return { _tag: "Numbers", set, uid: false }
    }
    const name = reader.word()
    if (Object.hasOwn(flags, name)) return { _tag: "Flag", flag: flags[name]! }
    if (name.startsWith("UN") && Object.hasOwn(flags, name.slice(2))) {
      return { _tag: "Not", key: { _tag: "Flag", flag: flags[name.slice(2)]! } }
    }
    if (Object.hasOwn(days, name)) {
      const [of, is] = days[name]!
      reader.space()
      const day = Dates.day(reader.isString ? reader.string().toString("latin1") : reader.atom())
      if (day === undefined) throw new Malformed("Invalid date")
      return { _tag: "Day", of, is, day }
    }
    switch (name) {
      case "ALL":
        return { _tag: "All" }
      case "RECENT":
        return { _tag: "Recent" }
      case "OLD":
        return { _tag: "Not", key: { _tag: "Recent" } }
      case "NEW":
        return { _tag: "And", keys: [{ _tag: "Recent" }, { _tag: "Not", key: { _tag: "Flag", flag: flags["SEEN"]! } }] }
      case "FROM":
      case "TO":
      case "CC":
      case "BCC":
      case "SUBJECT":
      case "BODY":
      case "TEXT":
        reader.space()
        return { _tag: "Text", in: name.toLowerCase() as "from", text: text() }
      case "HEADER": {
        reader.space()
        const field = reader.astring().toString("latin1").toLowerCase()
        reader.space()
        return { _tag: "Header", name: field, text: text() }
      }
      case "KEYWORD":
      case "UNKEYWORD": {
        reader.space()
        const flag: SearchKey = { _tag: "Flag", flag: reader.atom().toLowerCase() }
        return name === "KEYWORD" ? flag : { _tag: "Not", key: flag }
      }
      case "LARGER":
      case "SMALLER":
        reader.space()
        return {
          _tag: "Size",
          is: name === "LARGER" ? "larger" : "smaller",
          bytes: reader.number(Number.MAX_SAFE_INTEGER),
        }
      case "OLDER":
      case "YOUNGER":
        reader.space()
        return { _tag: "Age", is: name === "OLDER" ? "older" : "younger", seconds: reader.number() }
      case "NOT":
        reader.space()
        return { _tag: "Not", key: key(depth + 1) }
      case "OR": {
        reader.space()
        const either = key(depth + 1)
        reader.space()
        return { _tag: "Or", either, or: key(depth + 1) }
      }
      case "UID": {
        reader.space()
        if (reader.takes("$")) return { _tag: "Saved" }
        const set = Sets.read(reader.upTo(/[ )]/))
        if (set === undefined) throw new Malformed("Invalid UID set")
        return { _tag: "Numbers", set, uid: true }
      }
      case "MODSEQ":
        reader.space()
        // The optional entry name refers to annotations, which are not supported (RFC 7162 section 3.1.5).
        if (reader.peek === '"') {
          reader.string()
          reader.space()
          reader.word()
          reader.space()
        }
        return { _tag: "Modseq", atLeast: reader.modseq() }
      case "EMAILID":
      case "THREADID":
        reader.space()
        return { _tag: "Id", of: name === "EMAILID" ? "email" : "thread", id: reader.astring().toString("latin1") }
      default:
        throw new Malformed(`Unknown search key ${name}`)
    }
  }

  return several(0)
}

/** Whether the predicate holds for any of the keys. */
export const some = (key: SearchKey, which: (key: SearchKey) => boolean): boolean => {
  if (which(key)) return true
  switch (key._tag) {
    case "And":
      return key.keys.some((one) => some(one, which))
    case "Or":
      return some(key.either, which) || some(key.or, which)
    case "Not":
      return some(key.key, which)
    default:
      return false
  }
}
