/** Which command is done where, for a client that is logged in, and when a client may be told of what others did. */
import { Effect } from "effect"
import type { Action } from "../protocol/Command.ts"
import { bad, type Completion, type Conversation, ok } from "./Conversation.ts"
import * as Fetching from "./Fetching.ts"
import * as Mailboxes from "./Mailboxes.ts"
import * as Searching from "./Searching.ts"
import * as Selecting from "./Selecting.ts"
import type { Store, StoreError } from "./Store.ts"
import * as Storing from "./Storing.ts"

const unselected = bad("Select a mailbox first.")

const enable = (conversation: Conversation, wanted: ReadonlyArray<string>): Completion => {
  const enabled: Array<string> = []
  for (const name of wanted) {
    if (name === "CONDSTORE") conversation.wantsChanges()
    else if (name === "QRESYNC") {
      conversation.wantsChanges()
      conversation.qresync = true
    } else if (name === "UTF8=ACCEPT") conversation.utf8 = true
    else if (name === "IMAP4REV2") {
      conversation.rev2 = true
      conversation.utf8 = true
    } else continue
    enabled.push(name === "IMAP4REV2" ? "IMAP4rev2" : name)
  }
  conversation.write(`* ENABLED${enabled.map((name) => ` ${name}`).join("")}\r\n`)
  return ok("ENABLE completed.")
}

export const run = (
  conversation: Conversation,
  store: Store,
  tag: string,
  action: Action,
): Effect.Effect<Completion, StoreError | Fetching.CutShort> => {
  const { selected } = conversation
  switch (action.name) {
    case "NOOP":
      return Effect.succeed(ok("NOOP completed."))
    case "CHECK":
      return Effect.succeed(selected === undefined ? unselected : ok("CHECK completed."))
    case "ENABLE":
      return Effect.sync(() => enable(conversation, action.capabilities))
    case "NAMESPACE":
      conversation.write(`* NAMESPACE (("" "/")) NIL NIL\r\n`)
      return Effect.succeed(ok("NAMESPACE completed."))
    case "SELECT":
    case "EXAMINE":
      return Selecting.select(conversation, store, action)
    case "CREATE":
      return Mailboxes.create(store, action)
    case "DELETE":
      return Mailboxes.remove(conversation, store, action.mailbox)
    case "RENAME":
      return Mailboxes.rename(store, action)
    case "SUBSCRIBE":
    case "UNSUBSCRIBE":
      return Mailboxes.subscribe(store, action.name === "SUBSCRIBE", action.mailbox)
    case "LIST":
      return Mailboxes.list(conversation, store, action.listing)
    case "LSUB":
      return Mailboxes.lsub(conversation, store, action)
    case "STATUS":
      return Mailboxes.status(conversation, store, action)
    case "GETQUOTA":
      return Mailboxes.quota(conversation, store, action.root)
    case "GETQUOTAROOT":
      return Mailboxes.quotaRoot(conversation, store, action.mailbox)
    case "APPEND":
      return Storing.append(conversation, store, action)
    case "CLOSE":
    case "UNSELECT":
      return selected === undefined
        ? Effect.succeed(unselected)
        : Selecting.close(conversation, store, action.name === "CLOSE")
    default:
      return selected === undefined ? Effect.succeed(unselected) : inFolder(conversation, store, selected, tag, action)
  }
}

const inFolder = (
  conversation: Conversation,
  store: Store,
  selected: NonNullable<Conversation["selected"]>,
  tag: string,
  action: Action,
): Effect.Effect<Completion, StoreError | Fetching.CutShort> => {
  switch (action.name) {
    case "EXPUNGE":
      return Storing.expunge(conversation, store, selected, action)
    case "SEARCH":
      return Searching.search(conversation, store, selected, tag, action)
    case "SORT":
      return Searching.sort(conversation, store, selected, tag, action)
    case "THREAD":
      return Searching.thread(conversation, store, selected, action)
    case "FETCH":
      return Fetching.fetch(conversation, store, selected, action)
    case "STORE":
      return Storing.store(conversation, store, selected, action)
    case "COPY":
    case "MOVE":
      return Storing.copy(conversation, store, selected, action)
    default:
      return Effect.succeed(bad("That cannot be done now."))
  }
}

/** Commands by sequence number leave numbers as they are until they are done, and those that may follow were meant with them. */
const byNumber = new Set<Action["name"]>(["FETCH", "STORE", "SEARCH", "SORT", "THREAD", "COPY"])

export const mayTellRemovals = (action: Action): boolean =>
  !byNumber.has(action.name) || ("uid" in action && action.uid)

/** A command that opened or left a folder has told what there is. */
const settled = new Set<Action["name"]>(["SELECT", "EXAMINE", "CLOSE", "UNSELECT"])
export const mayLook = (action: Action): boolean => !settled.has(action.name)

/** Who asks for nothing asks what is new. */
export const looksAlways = ({ name }: Action): boolean => name === "NOOP" || name === "CHECK"
