/** Dispatches the commands of a logged-in client, and decides when the client may be told of changes by others. */
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
      return Effect.succeed(bad("The command is not allowed in this state."))
  }
}

/**
 * Commands that use sequence numbers. Numbers must not change while they run, nor for pipelined commands that were sent
 * with the same numbers in mind.
 */
const byNumber = new Set<Action["name"]>(["FETCH", "STORE", "SEARCH", "SORT", "THREAD", "COPY"])

export const mayTellRemovals = (action: Action): boolean =>
  !byNumber.has(action.name) || ("uid" in action && action.uid)

/** Commands that open or close a folder have already sent its state. */
const settled = new Set<Action["name"]>(["SELECT", "EXAMINE", "CLOSE", "UNSELECT"])
export const mayLook = (action: Action): boolean => !settled.has(action.name)

/** NOOP and CHECK always synchronize. */
export const looksAlways = ({ name }: Action): boolean => name === "NOOP" || name === "CHECK"
