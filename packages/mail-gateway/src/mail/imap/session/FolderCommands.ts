/**
 * LIST, LSUB, STATUS, quotas, and the commands that create, rename, delete and subscribe to folders (RFC 9051 section
 * 6.3, RFC 5258, 5819, 6154).
 */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import { Effect } from "effect"
import type { Listing, Named, StatusItem } from "../protocol/Command.ts"
import * as MailboxName from "../protocol/MailboxName.ts"
import { type Conversation, no, ok } from "./Conversation.ts"
import { find, closeFolder, mailboxId } from "./SelectedFolder.ts"
import { type Folder, type Folders, Refused, type Store } from "./Store.ts"

const useFlags: Readonly<Record<FolderUse, string | undefined>> = {
  inbox: undefined,
  sent: "\\Sent",
  drafts: "\\Drafts",
  junk: "\\Junk",
  trash: "\\Trash",
  archive: "\\Archive",
}

const uses: Readonly<Record<string, FolderUse>> = {
  "\\sent": "sent",
  "\\drafts": "drafts",
  "\\junk": "junk",
  "\\trash": "trash",
  "\\archive": "archive",
}

/** Returns every name: folders, ancestors that are not folders, and subscriptions. */
const named = ({ folders, subscribed }: Folders) => {
  const byName = new Map<string, Folder | undefined>(folders.map((folder) => [folder.name, folder]))
  const withChildren = new Set<string>()
  for (const { name } of folders) {
    for (const parent of MailboxName.parents(name)) {
      withChildren.add(parent)
      if (!byName.has(parent)) byName.set(parent, undefined)
    }
  }
  for (const name of subscribed) if (!byName.has(name)) byName.set(name, undefined)
  return { byName, withChildren }
}

/** INBOX first, then by name. */
const ordered = (names: Iterable<string>) =>
  [...names].sort((a, b) => (a === "INBOX" ? -1 : b === "INBOX" ? 1 : a < b ? -1 : a > b ? 1 : 0))

export const list = Effect.fnUntraced(function* (conversation: Conversation, store: Store, listing: Listing) {
  const { patterns, reference, select, returns } = listing
  if (patterns.length === 1 && patterns[0] === "" && !returns.has("EXTENDED")) {
    conversation.write(`* LIST (\\Noselect) "/" ""\r\n`)
    return ok("LIST completed.")
  }
  const all = yield* store.folders
  const { byName, withChildren } = named(all)
  const matches = patterns.map((pattern) => MailboxName.matcher(`${reference}${pattern}`))
  const matched = new Set<string>()
  let looked = 0
  for (const name of byName.keys()) {
    if (matches.some((match) => match(name))) matched.add(name)
    // A client determines the cost of its patterns, so other fibers run in between.
    if (++looked % 50 === 0) yield* Effect.yieldNow
  }
  const isSelected = (name: string) =>
    (!select.has("SUBSCRIBED") || all.subscribed.has(name)) &&
    (!select.has("SPECIAL-USE") || useOf(byName.get(name)) !== undefined)
  for (const name of ordered(byName.keys())) {
    if (!matched.has(name)) continue
    const folder = byName.get(name)
    const chosen = isSelected(name)
    // RFC 5258 section 3.5: a name with matching children that are not listed themselves.
    const info =
      select.has("RECURSIVEMATCH") &&
      [...byName.keys()].some((child) => child.startsWith(`${name}/`) && isSelected(child) && !matched.has(child))
    if (!chosen && !info) continue
    // Names that are not folders are only listed on request.
    if (folder === undefined && !select.has("SUBSCRIBED") && !withChildren.has(name)) continue
    const attributes = [
      ...(folder === undefined ? ["\\NonExistent"] : []),
      // \NonExistent implies \Noselect (RFC 5258 section 3), but older clients do not know that.
      ...(folder === undefined && !conversation.rev2 && !returns.has("EXTENDED") ? ["\\Noselect"] : []),
      withChildren.has(name) ? "\\HasChildren" : "\\HasNoChildren",
      ...(returns.has("SUBSCRIBED") && all.subscribed.has(name) ? ["\\Subscribed"] : []),
      ...[useOf(folder)].filter((use) => use !== undefined),
    ]
    const extended = info ? ` ("CHILDINFO" ("SUBSCRIBED"))` : ""
    conversation.write(`* LIST (${attributes.join(" ")}) "/" ${conversation.name(name)}${extended}\r\n`)
    if (returns.has("STATUS") && folder !== undefined && chosen) {
      yield* writeStatus(conversation, store, folder, listing.status)
    }
    if (conversation.isFull) yield* conversation.flush
  }
  return ok("LIST completed.")
})

const useOf = (folder: Folder | undefined) => (folder?.use == null ? undefined : useFlags[folder.use])

export const lsub = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  { reference, pattern }: Named<"LSUB">,
) {
  const all = yield* store.folders
  const existing = new Set(all.folders.map(({ name }) => name))
  const matches = MailboxName.matcher(`${reference}${pattern}`)
  const shown = new Map<string, boolean>()
  for (const name of all.subscribed) {
    if (matches(name)) shown.set(name, true)
    // RFC 3501 section 6.3.9: `%` shows an ancestor that is not subscribed itself.
    else
      for (const parent of MailboxName.parents(name)) if (matches(parent)) shown.set(parent, all.subscribed.has(parent))
  }
  for (const name of ordered(shown.keys())) {
    const selectable = shown.get(name) === true && existing.has(name)
    conversation.write(`* LSUB (${selectable ? "" : "\\Noselect"}) "/" ${conversation.name(name)}\r\n`)
  }
  return ok("LSUB completed.")
})

const writeStatus = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  folder: Folder,
  items: ReadonlyArray<StatusItem>,
) {
  const counted = yield* store.status(folder)
  if (items.includes("HIGHESTMODSEQ")) conversation.wantsChanges()
  const values = items.map((item) => {
    switch (item) {
      case "MESSAGES":
        return `MESSAGES ${counted.messages}`
      case "RECENT":
        return `RECENT ${counted.recent}`
      case "UIDNEXT":
        return `UIDNEXT ${counted.uidNext}`
      case "UIDVALIDITY":
        return `UIDVALIDITY ${folder.uidValidity}`
      case "UNSEEN":
        return `UNSEEN ${counted.unseen}`
      case "DELETED":
        return `DELETED ${counted.deleted}`
      case "SIZE":
        return `SIZE ${counted.size}`
      case "HIGHESTMODSEQ":
        return `HIGHESTMODSEQ ${counted.modseq}`
      case "MAILBOXID":
        return `MAILBOXID (${mailboxId(folder)})`
      case "APPENDLIMIT":
        return `APPENDLIMIT ${conversation.appendLimit}`
    }
  })
  conversation.write(`* STATUS ${conversation.name(folder.name)} (${values.join(" ")})\r\n`)
})

export const status = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  { mailbox, items }: Named<"STATUS">,
) {
  yield* writeStatus(conversation, store, yield* find(store, mailbox), items)
  return ok("STATUS completed.")
})

export const create = Effect.fnUntraced(function* (store: Store, { mailbox, uses: wanted }: Named<"CREATE">) {
  // A trailing delimiter announces children and is not part of the name (RFC 9051 section 6.3.4).
  const name = mailbox.endsWith(MailboxName.delimiter) ? mailbox.slice(0, -1) : mailbox
  if (!MailboxName.isValid(name))
    return yield* new Refused({ code: "CANNOT", message: "A mailbox cannot have this name." })
  const [use, ...others] = wanted.map((one) =>
    Object.hasOwn(uses, one.toLowerCase()) ? uses[one.toLowerCase()] : undefined,
  )
  if (wanted.length > 0 && (use === undefined || others.length > 0)) {
    return yield* new Refused({ code: "USEATTR", message: "A mailbox can have one known special use." })
  }
  yield* store.create(name, use ?? null)
  return ok("CREATE completed.")
})

export const remove = Effect.fnUntraced(function* (conversation: Conversation, store: Store, name: string) {
  yield* store.remove(name)
  if (conversation.selected?.folder.name === name) {
    closeFolder(conversation)
    if (conversation.rev2) conversation.write("* OK [CLOSED] The mailbox was deleted\r\n")
  }
  return ok("DELETE completed.")
})

export const rename = Effect.fnUntraced(function* (store: Store, { from, to }: Named<"RENAME">) {
  const name = to.endsWith(MailboxName.delimiter) ? to.slice(0, -1) : to
  if (!MailboxName.isValid(name))
    return yield* new Refused({ code: "CANNOT", message: "A mailbox cannot have this name." })
  yield* store.rename(from, name)
  return ok("RENAME completed.")
})

export const subscribe = Effect.fnUntraced(function* (store: Store, subscribes: boolean, mailbox: string) {
  if (subscribes && !MailboxName.isValid(mailbox)) {
    return yield* new Refused({ code: "CANNOT", message: "A mailbox cannot have this name." })
  }
  yield* store.subscribe(mailbox, subscribes)
  return ok(subscribes ? "SUBSCRIBE completed." : "UNSUBSCRIBE completed.")
})

/** A single quota root for the whole Mailbox in bytes (RFC 9208). */
export const quota = Effect.fnUntraced(function* (conversation: Conversation, store: Store, root: string) {
  if (root !== "") return no("The quota root does not exist.", "NONEXISTENT")
  const { used, limit } = yield* store.quota
  conversation.write(`* QUOTA "" (STORAGE ${Math.ceil(used / 1024)} ${Math.floor(limit / 1024)})\r\n`)
  return ok("GETQUOTA completed.")
})

export const quotaRoot = Effect.fnUntraced(function* (conversation: Conversation, store: Store, mailbox: string) {
  yield* find(store, mailbox)
  conversation.write(`* QUOTAROOT ${conversation.name(mailbox)} ""\r\n`)
  yield* quota(conversation, store, "")
  return ok("GETQUOTAROOT completed.")
})
