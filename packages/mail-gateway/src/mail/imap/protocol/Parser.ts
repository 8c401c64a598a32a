/** Parses commands (RFC 9051 section 9). It never throws: an invalid command is `Malformed`, with what was expected. */
import type { Segment } from "./Framing.ts"
import * as Dates from "./Dates.ts"
import * as FetchItems from "./FetchItems.ts"
import {
  type Action,
  type Command,
  type Listing,
  type Plain,
  type Resync,
  type StatusItem,
  statusItems,
} from "./Command.ts"
import { Malformed, Reader, textOf } from "./Reader.ts"
import { boundedPattern, mailboxOf, messages, type CommandInput } from "./Arguments.ts"
import { searching, sorting, threading } from "./SearchCommands.ts"
import type * as Sets from "./Sets.ts"

/** Parses a command. `utf8` says whether names are UTF-8 in this session (RFC 6855, RFC 9051). */
export const parse = (segments: ReadonlyArray<Segment>, utf8: boolean): Command => {
  const reader = new Reader(segments)
  let tag = "*"
  let name = ""
  try {
    tag = reader.tag()
    reader.space()
    name = reader.word()
    let uid = false
    if (name === "UID") {
      uid = true
      reader.space()
      name = reader.word()
      if (!withUid.has(name)) throw new Malformed(`Unknown command UID ${name.slice(0, 40)}`)
    }
    const read = Object.hasOwn(actions, name) ? actions[name] : undefined
    if (read === undefined) throw new Malformed(`Unknown command ${name.slice(0, 40)}`)
    const action = read({ reader, uid, mailbox: () => mailboxOf(reader.astring(), utf8), utf8 })
    reader.end()
    return { _tag: "Command", tag, action }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { _tag: "Malformed", tag, message: error.message, name }
  }
}

const withUid = new Set(["FETCH", "STORE", "COPY", "MOVE", "SEARCH", "SORT", "THREAD", "EXPUNGE"])

/** Parses a flag or keyword; `\Recent` cannot be set by clients. */
const flag = (reader: Reader): string => {
  const system = reader.takes("\\")
  if (system && reader.takes("*")) return "\\*"
  const name = `${system ? "\\" : ""}${reader.atom()}`
  if (name.length > 200) throw new Malformed("The keyword is too long")
  return name
}

const statusItem = (reader: Reader): StatusItem => {
  const word = reader.word()
  const item = statusItems.find((one) => one === word)
  if (item === undefined) throw new Malformed(`Unknown status item ${word.slice(0, 40)}`)
  return item
}

const plain = (name: Plain) => (): Action => ({ name })

const selecting =
  (name: "SELECT" | "EXAMINE") =>
  ({ reader, mailbox }: CommandInput): Action => {
    reader.space()
    const of = mailbox()
    let condstore = false
    let resync: Resync | undefined
    if (reader.takes(" ")) {
      reader.list(() => {
        const parameter = reader.word()
        if (parameter === "CONDSTORE") condstore = true
        else if (parameter === "QRESYNC") {
          reader.space()
          resync = resyncOf(reader)
        } else throw new Malformed(`Unknown parameter ${parameter.slice(0, 40)}`)
      })
    }
    return { name, mailbox: of, condstore, resync }
  }

/**
 * Parses QRESYNC parameters (RFC 7162 section 3.2.5). The client's sequence numbers are ignored, since expunges are
 * logged.
 */
const resyncOf = (reader: Reader): Resync => {
  reader.expect("(")
  const uidValidity = reader.number()
  reader.space()
  const modseq = reader.modseq()
  let known: Sets.SequenceSet | undefined
  if (reader.takes(" ")) {
    if (reader.peek !== "(") {
      const set = messages(reader)
      if (set === "saved") throw new Malformed("Invalid UID set")
      known = set
      reader.takes(" ")
    }
    if (reader.takes("(")) {
      const numbers = messages(reader)
      reader.space()
      const uids = messages(reader)
      if (numbers === "saved" || uids === "saved") throw new Malformed("Invalid message set")
      reader.expect(")")
    }
  }
  reader.expect(")")
  return { uidValidity, modseq, known }
}

const ofMailbox =
  (name: "DELETE" | "SUBSCRIBE" | "UNSUBSCRIBE" | "GETQUOTAROOT") =>
  ({ reader, mailbox }: CommandInput): Action => {
    reader.space()
    return { name, mailbox: mailbox() }
  }

const selectOptions = new Set(["SUBSCRIBED", "REMOTE", "RECURSIVEMATCH", "SPECIAL-USE"])
const returnOptions = new Set(["SUBSCRIBED", "CHILDREN", "SPECIAL-USE", "STATUS"])

const listing = ({ reader, utf8 }: CommandInput): Action => {
  reader.space()
  const select = new Set<string>()
  if (reader.peek === "(") {
    for (const option of reader.list(() => reader.word(), 0)) {
      if (!selectOptions.has(option)) throw new Malformed(`Unknown selection option ${option.slice(0, 40)}`)
      select.add(option)
    }
    if (select.has("RECURSIVEMATCH") && !select.has("SUBSCRIBED") && !select.has("SPECIAL-USE")) {
      throw new Malformed("RECURSIVEMATCH goes with another option")
    }
    reader.space()
  }
  const reference = mailboxOf(reader.astring(), utf8)
  reader.space()
  const extended = select.size > 0 || reader.peek === "("
  const pattern = () => mailboxOf(boundedPattern(reader.pattern()), utf8)
  const patterns = reader.peek === "(" ? reader.list(pattern) : [pattern()]
  const returns = new Set<string>(select.has("SUBSCRIBED") ? ["SUBSCRIBED"] : [])
  if (select.has("SPECIAL-USE")) returns.add("SPECIAL-USE")
  let status: ReadonlyArray<StatusItem> = []
  if (reader.takes(" ")) {
    if (reader.word() !== "RETURN") throw new Malformed("Expected RETURN")
    reader.space()
    reader.list(() => {
      const option = reader.word()
      if (!returnOptions.has(option)) throw new Malformed(`Unknown return option ${option.slice(0, 40)}`)
      returns.add(option)
      if (option === "STATUS") {
        reader.space()
        status = reader.list(() => statusItem(reader))
      }
    }, 0)
    returns.add("EXTENDED")
  }
  if (extended) returns.add("EXTENDED")
  if (patterns.length > 10) throw new Malformed("Too many patterns")
  return { name: "LIST", listing: { reference, patterns, select, returns, status } satisfies Listing }
}

const fetching = ({ reader, uid }: CommandInput): Action => {
  reader.space()
  const of = messages(reader)
  reader.space()
  const items = FetchItems.items(reader)
  let changedSince: number | undefined
  let vanished = false
  if (reader.takes(" ")) {
    reader.list(() => {
      const modifier = reader.word()
      if (modifier === "CHANGEDSINCE") {
        reader.space()
        changedSince = reader.modseq()
      } else if (modifier === "VANISHED") vanished = true
      else throw new Malformed(`Unknown modifier ${modifier.slice(0, 40)}`)
    })
  }
  if (vanished && (changedSince === undefined || !uid))
    throw new Malformed("VANISHED goes with UID FETCH and CHANGEDSINCE")
  return { name: "FETCH", uid, messages: of, items, changedSince, vanished }
}

const storing = ({ reader, uid }: CommandInput): Action => {
  reader.space()
  const of = messages(reader)
  reader.space()
  let unchangedSince: number | undefined
  if (reader.peek === "(") {
    reader.list(() => {
      if (reader.word() !== "UNCHANGEDSINCE") throw new Malformed("Unknown modifier")
      reader.space()
      unchangedSince = reader.modseq()
    })
    reader.space()
  }
  const how = reader.takes("+") ? "add" : reader.takes("-") ? "remove" : "set"
  const item = reader.word()
  if (item !== "FLAGS" && item !== "FLAGS.SILENT") throw new Malformed("Expected FLAGS")
  reader.space()
  const flags: Array<string> = []
  if (reader.peek === "(") flags.push(...reader.list(() => flag(reader), 0))
  else {
    flags.push(flag(reader))
    while (reader.takes(" ")) flags.push(flag(reader))
  }
  return { name: "STORE", uid, messages: of, how, silent: item === "FLAGS.SILENT", flags, unchangedSince }
}

const copying =
  (name: "COPY" | "MOVE") =>
  ({ reader, uid, mailbox }: CommandInput): Action => {
    reader.space()
    const of = messages(reader)
    reader.space()
    return { name, uid, messages: of, mailbox: mailbox() }
  }

const appending = ({ reader, mailbox }: CommandInput): Action => {
  reader.space()
  const of = mailbox()
  reader.space()
  let flags: ReadonlyArray<string> = []
  if (reader.peek === "(") {
    flags = reader.list(() => flag(reader), 0)
    reader.space()
  }
  let at: Dates.Zoned | undefined
  if (reader.peek === '"') {
    at = Dates.time(reader.string().toString("latin1"))
    if (at === undefined) throw new Malformed("Invalid date")
    reader.space()
  }
  // RFC 6855 section 4: the literal is marked as UTF-8.
  const utf8 = reader.follows("UTF8 (")
  if (utf8) {
    reader.word()
    reader.space()
    reader.expect("(")
  }
  const { bytes, aside } = reader.literal()
  if (utf8) reader.expect(")")
  return { name: "APPEND", mailbox: of, flags, at, message: aside ? "aside" : bytes }
}

const actions: Readonly<Record<string, (reading: CommandInput) => Action>> = {
  CAPABILITY: plain("CAPABILITY"),
  NOOP: plain("NOOP"),
  LOGOUT: plain("LOGOUT"),
  STARTTLS: plain("STARTTLS"),
  CHECK: plain("CHECK"),
  CLOSE: plain("CLOSE"),
  UNSELECT: plain("UNSELECT"),
  IDLE: plain("IDLE"),
  NAMESPACE: plain("NAMESPACE"),
  ID: ({ reader }) => {
    reader.space()
    if (reader.peek !== "(") {
      reader.nstring()
      return { name: "ID", fields: [] }
    }
    return { name: "ID", fields: reader.list(() => reader.nstring()?.toString("utf8") ?? null, 0) }
  },
  LOGIN: ({ reader }) => {
    reader.space()
    const user = textOf(reader.astring())
    reader.space()
    return { name: "LOGIN", user, password: textOf(reader.astring()) }
  },
  AUTHENTICATE: ({ reader }) => {
    reader.space()
    const mechanism = reader.word()
    const initial = reader.takes(" ") ? reader.upTo(/ /) : undefined
    return { name: "AUTHENTICATE", mechanism, initial }
  },
  ENABLE: ({ reader }) => {
    const capabilities: Array<string> = []
    do {
      reader.space()
      capabilities.push(reader.word())
    } while (reader.peek === " ")
    return { name: "ENABLE", capabilities }
  },
  COMPRESS: ({ reader }) => {
    reader.space()
    return { name: "COMPRESS", algorithm: reader.word() }
  },
  SELECT: selecting("SELECT"),
  EXAMINE: selecting("EXAMINE"),
  CREATE: ({ reader, mailbox }) => {
    reader.space()
    const of = mailbox()
    const uses: Array<string> = []
    if (reader.takes(" ")) {
      reader.list(() => {
        if (reader.word() !== "USE") throw new Malformed("Unknown parameter")
        reader.space()
        uses.push(...reader.list(() => flag(reader)))
      })
    }
    return { name: "CREATE", mailbox: of, uses }
  },
  DELETE: ofMailbox("DELETE"),
  SUBSCRIBE: ofMailbox("SUBSCRIBE"),
  UNSUBSCRIBE: ofMailbox("UNSUBSCRIBE"),
  GETQUOTAROOT: ofMailbox("GETQUOTAROOT"),
  GETQUOTA: ({ reader }) => {
    reader.space()
    return { name: "GETQUOTA", root: textOf(reader.astring()) }
  },
  RENAME: ({ reader, mailbox }) => {
    reader.space()
    const from = mailbox()
    reader.space()
    return { name: "RENAME", from, to: mailbox() }
  },
  LIST: listing,
  LSUB: ({ reader, mailbox, utf8 }) => {
    reader.space()
    const reference = mailbox()
    reader.space()
    return { name: "LSUB", reference, pattern: mailboxOf(boundedPattern(reader.pattern()), utf8) }
  },
  STATUS: ({ reader, mailbox }) => {
    reader.space()
    const of = mailbox()
    reader.space()
    return { name: "STATUS", mailbox: of, items: reader.list(() => statusItem(reader)) }
  },
  APPEND: appending,
  EXPUNGE: ({ reader, uid }) => {
    if (!uid) return { name: "EXPUNGE", messages: undefined }
    reader.space()
    return { name: "EXPUNGE", messages: messages(reader) }
  },
  SEARCH: searching,
  SORT: sorting,
  THREAD: threading,
  FETCH: fetching,
  STORE: storing,
  COPY: copying("COPY"),
  MOVE: copying("MOVE"),
}
