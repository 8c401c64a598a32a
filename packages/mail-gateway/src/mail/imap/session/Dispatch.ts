/** Dispatches the commands of a logged-in client, and decides when changes by other clients may be sent. */
import { Effect } from "effect"
import type { Action } from "../protocol/Command.ts"
import { bad, type Completion, type Conversation, ok } from "./Conversation.ts"
import * as FetchCommand from "./FetchCommand.ts"
import * as FolderCommands from "./FolderCommands.ts"
import * as SearchCommands from "./SearchCommands.ts"
import * as SelectedFolder from "./SelectedFolder.ts"
import type { Store, StoreError } from "./Store.ts"
import * as MessageCommands from "./MessageCommands.ts"

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
): Effect.Effect<Completion, StoreError | FetchCommand.CutShort> => {
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
      return SelectedFolder.select(conversation, store, action)
    case "CREATE":
      return FolderCommands.create(store, action)
    case "DELETE":
      return FolderCommands.remove(conversation, store, action.mailbox)
    case "RENAME":
      return FolderCommands.rename(store, action)
    case "SUBSCRIBE":
    case "UNSUBSCRIBE":
      return FolderCommands.subscribe(store, action.name === "SUBSCRIBE", action.mailbox)
    case "LIST":
      return FolderCommands.list(conversation, store, action.listing)
    case "LSUB":
      return FolderCommands.lsub(conversation, store, action)
    case "STATUS":
      return FolderCommands.status(conversation, store, action)
    case "GETQUOTA":
      return FolderCommands.quota(conversation, store, action.root)
    case "GETQUOTAROOT":
      return FolderCommands.quotaRoot(conversation, store, action.mailbox)
    case "APPEND":
      return MessageCommands.append(conversation, store, action)
    case "CLOSE":
    case "UNSELECT":
      return selected === undefined
        ? Effect.succeed(unselected)
        : SelectedFolder.close(conversation, store, action.name === "CLOSE")
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
): Effect.Effect<Completion, StoreError | FetchCommand.CutShort> => {
  switch (action.name) {
    case "EXPUNGE":
      return MessageCommands.expunge(conversation, store, selected, action)
    case "SEARCH":
      return SearchCommands.search(conversation, store, selected, tag, action)
    case "SORT":
      return SearchCommands.sort(conversation, store, selected, tag, action)
    case "THREAD":
      return SearchCommands.thread(conversation, store, selected, action)
    case "FETCH":
      return FetchCommand.fetch(conversation, store, selected, action)
    case "STORE":
      return MessageCommands.store(conversation, store, selected, action)
    case "COPY":
    case "MOVE":
      return MessageCommands.copy(conversation, store, selected, action)
    default:
      return Effect.succeed(bad("The command is not allowed in this state."))
  }
}

/**
 * Commands that use sequence numbers. Numbers must not change while they run, nor for pipelined commands that were sent
 * with the same numbers in mind.
 */
const byNumber = new Set<Action["name"]>(["FETCH", "STORE", "SEARCH", "SORT", "THREAD", "COPY"])

export const maySendRemovals = (action: Action): boolean =>
  !byNumber.has(action.name) || ("uid" in action && action.uid)

/** Commands that open or close a folder have already sent its state. */
const settled = new Set<Action["name"]>(["SELECT", "EXAMINE", "CLOSE", "UNSELECT"])
export const maySync = (action: Action): boolean => !settled.has(action.name)

/** NOOP and CHECK always synchronize. */
export const alwaysSyncs = ({ name }: Action): boolean => name === "NOOP" || name === "CHECK"
